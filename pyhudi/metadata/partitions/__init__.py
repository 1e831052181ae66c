"""The partitions of the metadata table: one file each, and the registry of them."""
