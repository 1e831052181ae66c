"""Cleaning: files that no allowed query needs go."""
