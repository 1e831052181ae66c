"""Tables from existing files and from tables of other formats."""
