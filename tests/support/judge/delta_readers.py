"""Reads Delta tables by DuckDB's `delta_scan`: `delta_readers.py PATH ...` prints the rows of each as a line of JSON.

Runs in the environment of `../shared/services/exports`, whose DuckDB has the extension. Nothing of the project is
imported here.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    duckdb = importlib.import_module("duckdb")
    extension = importlib.import_module("duckdb_extension_delta")
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    inside = Path(str(extension.__file__)).parent
    connection.load_extension(str(next(inside.glob(f"extensions/v{duckdb.__version__}/*"))))
    for path in sys.argv[1:]:
        relation = connection.sql(f"select * from delta_scan('{path}')")
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        print(json.dumps(sorted(repr(sorted(row.items())) for row in rows)), flush=True)


main()
