"""PyHudi."""
