"""Archiving: old instants move to the history."""
