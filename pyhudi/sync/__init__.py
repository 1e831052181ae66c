"""Tables registered in catalogs, where other engines find them. `syncing.py` does it; `hive.py` is a Hive metastore."""
