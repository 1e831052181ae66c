"""The meaning of Spark expressions: one typed tree, one table of functions, Arrow and DuckDB as back ends."""
