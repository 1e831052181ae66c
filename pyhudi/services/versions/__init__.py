"""Upgrade and downgrade of tables."""
