"""Rollback, savepoints, restore."""
