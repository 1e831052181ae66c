"""Helpers for Arrow itself: kinds of types, numbers in buffers, rows of two tables."""
