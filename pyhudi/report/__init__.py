"""A table as a page for the browser."""
