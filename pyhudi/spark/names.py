"""Spark's classes under names for the floors above, for types only: those don't import PySpark."""

from __future__ import annotations

from pyspark.sql import DataFrame as SparkDataFrame
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

__all__ = ["SparkDataFrame", "SparkSession", "StructType"]
