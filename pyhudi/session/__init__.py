"""What hangs PyHudi into a Spark session: `enable`, `format("hudi")` and the Python data source."""
