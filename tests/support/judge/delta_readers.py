"""Reads Delta tables by DuckDB's `delta_scan`. Prints lines of JSON.

    delta_readers.py PATH ...                      the rows of each table
    delta_readers.py --where PATH CONDITION ...    the `id`s of a table's rows, for each condition

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
    if sys.argv[1] == "--where":
        path, *conditions = sys.argv[2:]
        for condition in conditions:
            ids = connection.sql(f"select id from delta_scan('{path}') where {condition} order by id").fetchall()
            print(json.dumps([row[0] for row in ids]), flush=True)
        return
    for path in sys.argv[1:]:
        relation = connection.sql(f"select * from delta_scan('{path}')")
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        print(json.dumps(sorted(repr(sorted(row.items())) for row in rows)), flush=True)


main()
