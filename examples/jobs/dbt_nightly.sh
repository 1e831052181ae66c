#!/usr/bin/env bash
# dbt builds the models, then pyhudi cares for their tables. Usage: dbt_nightly.sh TARGET_FOLDER WAREHOUSE
# The tables are those that dbt's manifest names with file_format hudi. docs/dbt.md says how dbt writes them.
set -euo pipefail
target=$1 warehouse=$2

if [ "${DBT_BUILD:-yes}" = yes ]; then dbt build --target-path "$target"; fi
python3 - "$target/manifest.json" <<'PYTHON' | while read -r table; do
import json, sys
for node in json.load(open(sys.argv[1]))["nodes"].values():
    if node["resource_type"] == "model" and node["config"].get("file_format") == "hudi":
        print(f"{node['schema']}.{node['alias']}")
PYTHON
  pyhudi clean "$table" --catalog "$warehouse" --yes --json < /dev/null
  pyhudi table health "$table" --catalog "$warehouse" --json < /dev/null || [ $? -eq 3 ]
done
