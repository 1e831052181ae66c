"""Spark's classes by names that the floors above can say, for types only: they don't import PySpark themselves."""

from __future__ import annotations

from pyspark.sql import DataFrame as SparkDataFrame
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

__all__ = ["SparkDataFrame", "SparkSession", "StructType"]
