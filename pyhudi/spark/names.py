"""Spark's classes for type hints in the rooms above, which don't import PySpark."""

from __future__ import annotations

from pyspark.sql import DataFrame as SparkDataFrame
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

__all__ = ["SparkDataFrame", "SparkSession", "StructType"]
