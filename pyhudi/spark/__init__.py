"""PyHudi on Spark: the engine, reading and writing DataFrames, and the switch for unchanged scripts.

The only package (but for the data source module `pyspark_hudi`) that imports pyspark.
"""
