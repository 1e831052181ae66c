"""Parquet by hand: what pyarrow does not do with footers, column chunks and pages, or not safely."""
