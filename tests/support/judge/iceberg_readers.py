"""Reads Iceberg tables by DuckDB's `iceberg_scan`: `iceberg_readers.py METADATA FILE ...` writes the rows of each to a
Parquet file. `METADATA`: a table's metadata file.

Runs in the environment of `../shared/services/exports`, whose DuckDB has the extension. Nothing of the project is
imported here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pyarrow.parquet as pq


def main() -> None:
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    for name in ("avro", "iceberg"):
        inside = Path(str(importlib.import_module(f"duckdb_extension_{name}").__file__)).parent
        connection.load_extension(str(next(inside.glob(f"extensions/v{duckdb.__version__}/*"))))
    for metadata, file in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        pq.write_table(connection.sql(f"select * from iceberg_scan('{metadata}')").to_arrow_table(), file)


main()
