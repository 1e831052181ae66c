"""What statistics can decide of a condition, without the rows."""
