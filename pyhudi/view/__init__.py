"""The files of the table: file groups and slices as of an instant, and pending plans for them."""
