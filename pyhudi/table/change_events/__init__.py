"""Change events of a source, applied to a table."""
