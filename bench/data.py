"""Rows of the benchmark: 20 columns, 30 partitions, every cell a function of row number and version.

Written by Spark once for each size, as plain Parquet that all contestants read.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 30
KEY, PARTITION, ORDERING = "id", "day", "ts"
STATUS = "array('new', 'paid', 'packed', 'shipped', 'returned', 'cancelled')"
HUDI = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.partitionpath.field": PARTITION,
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.ordering.fields": ORDERING,
}


def expressions(version: int) -> list[str]:
    """20 columns over the column `n`: strings of low, middle and high cardinality, numbers, decimals, times, nulls."""
    v = version
    return [
        "concat(substr(md5(cast(n as string)), 1, 20), lpad(cast(n as string), 12, '0')) as id",
        f"date_format(date_add(date'2024-01-01', cast(n % {PARTITIONS} as int)), 'yyyy-MM-dd') as day",
        f"{v} as ts",
        f"cast(hash(n, {v}, 1) as bigint) as amount_cents",
        f"cast(pmod(hash(n, {v}, 2), 1000) as int) as quantity",
        f"pmod(hash(n, {v}, 3), 1000000) / 64.0d as price",
        f"pmod(hash(n, {v}, 4), 1000000) / 64.0d as weight",
        f"cast(pmod(hash(n, {v}, 5), 100000000) / 100 as decimal(18,2)) as total",
        f"cast(pmod(hash(n, {v}, 6), 1000000) / 10000 as decimal(10,4)) as tax",
        f"element_at({STATUS}, 1 + pmod(hash(n, {v}, 7), 6)) as status",
        f"concat('country-', pmod(hash(n, {v}, 8), 200)) as country",
        f"concat('product-', pmod(hash(n, {v}, 9), 20000)) as product",
        f"concat('city-', pmod(hash(n, {v}, 10), 3000)) as city",
        f"substr(sha2(concat(n, '-{v}'), 256), 1, 40) as comment",
        f"timestamp_micros(1700000000000000 + n * 1000000 + {v}) as created_at",
        f"timestamp_micros(1700000000000000 + n * 1000000 + {v} * 86400000000) as updated_at",
        f"pmod(hash(n, {v}, 11), 2) = 0 as is_gift",
        f"cast(pmod(hash(n, {v}, 12), 1000) / 10.0 as float) as score",
        f"date_add(date'2024-01-01', cast(pmod(hash(n, {v}, 13), 365) as int)) as due",
        f"if(pmod(hash(n, {v}, 14), 10) < 3, null, substr(md5(concat(n, 'n{v}')), 1, 12)) as note",
    ]


def source(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Rows 0 to `rows` at version 1, kept as Parquet in `folder`."""
    return staged(spark, folder / f"rows-{rows}", spark.range(rows).withColumnRenamed("id", "n"), 1)


def batch(spark: SparkSession, folder: Path, rows: int, share: float, version: int) -> DataFrame:
    """An update of every (1/share)-th row, spread over all partitions and files."""
    step = max(1, round(1 / share))
    # The offset differs with the version, and step and PARTITIONS need not be coprime: spread by a hash of the row.
    numbers = spark.range(rows).withColumnRenamed("id", "n").where(f"pmod(hash(n, {version}, 99), {step}) = 0")
    return staged(spark, folder / f"batch-{rows}-{share}-{version}", numbers, version)


def batch_of_one_partition(spark: SparkSession, folder: Path, rows: int, size: int, version: int) -> DataFrame:
    """An update of `size` rows of one partition."""
    numbers = spark.range(rows).withColumnRenamed("id", "n").where(f"n % {PARTITIONS} = 7").limit(size)
    return staged(spark, folder / f"small-{rows}-{size}-{version}", numbers, version)


def staged(spark: SparkSession, path: Path, numbers: DataFrame, version: int) -> DataFrame:
    if not (path / "_SUCCESS").exists():
        numbers.selectExpr(*expressions(version)).write.mode("overwrite").parquet(str(path))
    frame = spark.read.parquet(str(path))
    return spark.read.schema(frame.schema).parquet(str(path))
