"""Hudi's Spark SQL on top of `HudiTable`: a door, not an engine.

tokens → statement (which of our statements is it?) → its own module (clauses) → calls of `pyhudi.table`; expressions
and queries are handed, as they were written, to the session's engine: Spark, or DuckDB without Spark.
"""
