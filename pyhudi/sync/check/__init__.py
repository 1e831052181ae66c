"""Checks which engines read a table, and which rows they would miss or show wrongly."""
