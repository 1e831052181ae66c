"""The metadata table."""
