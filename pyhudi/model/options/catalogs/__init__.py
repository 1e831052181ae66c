"""Options of catalogs and formats in which other engines find a table."""
