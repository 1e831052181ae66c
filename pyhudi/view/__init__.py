"""Which files are the table: file groups and slices as of an instant, and the plans that wait for them."""
