"""Whole queries in Spark's words as DuckDB's: sources, names, clauses, and the type of each column of the result."""

from __future__ import annotations

from pyhudi.expressions.query.writer import duckdb_query

__all__ = ["duckdb_query"]
