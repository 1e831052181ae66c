"""Reads exports on S3 by DuckDB: `exports_on_s3.py HOST:PORT DELTA ICEBERG` prints the `id`s of each as a line of JSON.
The keys are in the environment. `ICEBERG`: a table's metadata file.

Runs in the environment of `../shared/services/exports`, whose DuckDB has the extensions. Nothing of the project is
imported here.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect()
    for name in ("httpfs", "delta", "avro", "iceberg"):
        inside = Path(str(importlib.import_module(f"duckdb_extension_{name}").__file__)).parent
        connection.load_extension(str(next(inside.glob(f"extensions/v{duckdb.__version__}/*"))))
    endpoint, delta, iceberg = sys.argv[1:]
    key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    connection.execute(
        f"create secret (type s3, key_id '{key}', secret '{secret}', region 'us-east-1', endpoint '{endpoint}', "
        "use_ssl false, url_style 'path')"
    )
    for source in (f"delta_scan('{delta}')", f"iceberg_scan('{iceberg}')"):
        rows = connection.sql(f"select id from {source} order by id").fetchall()
        print(json.dumps([row[0] for row in rows]), flush=True)


main()
