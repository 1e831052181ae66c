"""Archiving: old instants move to the archived timeline."""
