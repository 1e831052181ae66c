"""An HTML page that reports on a table."""
