"""Whole queries in Spark SQL, written for DuckDB: sources, names, clauses, and the type of each result column."""

from __future__ import annotations

from pyhudi.expressions.query.writer import duckdb_query

__all__ = ["duckdb_query"]
