"""The connection of PyHudi to a Spark session: `enable`, `format("hudi")` and the Python data source."""
