"""Registration of tables in catalogs, where other engines find them. `syncing.py` syncs; `hive.py` is a metastore."""
