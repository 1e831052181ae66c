"""Filters a Delta table by DuckDB's `delta_scan`: `delta_filters.py PATH CONDITION ...` prints, for each condition, the
`id`s of its rows as a line of JSON.

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
    path, *conditions = sys.argv[1:]
    for condition in conditions:
        rows = connection.sql(f"select id from delta_scan('{path}') where {condition} order by id").fetchall()
        print(json.dumps([row[0] for row in rows]), flush=True)


main()
