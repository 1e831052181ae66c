"""Which engines read a table as it is, and what they would miss or show wrongly."""
