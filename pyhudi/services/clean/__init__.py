"""Cleaning: files that no allowed query needs are deleted."""
