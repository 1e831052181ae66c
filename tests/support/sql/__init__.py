"""Statements of SQL and what they do."""
