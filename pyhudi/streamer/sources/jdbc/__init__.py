"""Tables of databases as a source."""
