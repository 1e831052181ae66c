"""Files of a folder as a source."""
