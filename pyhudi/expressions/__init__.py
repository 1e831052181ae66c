"""What an expression in Spark's words means: one typed tree, one table of functions, Arrow and DuckDB as back ends."""
