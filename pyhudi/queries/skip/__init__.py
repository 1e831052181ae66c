"""Files that a query need not open: by partition paths, statistics, keys and expressions."""
