"""BigQueryOptions: the manifest for BigQuery, and the SQL statements that make its tables.

Source: Hudi's documented keys (BigQuerySyncConfig).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import key_of, option
from pyhudi.model.options.spec import Kind

__all__ = ["BigQueryOptions", "key_of_bigquery"]


@dataclass(frozen=True, slots=True)
class BigQueryOptions:
    """`project`: None for the one that runs the statements. `dataset`, `table`: None for the table's own names."""

    project: str | None = option(
        "hoodie.gcp.bigquery.sync.project_id",
        None,
        "The project of the tables in BigQuery. Unset: that of whoever runs the statements.",
        Kind.TEXT,
    )
    dataset: str | None = option(
        "hoodie.gcp.bigquery.sync.dataset_name",
        None,
        "Their dataset, which must be there. Unset: `hoodie.database.name` of the table.",
        Kind.TEXT,
    )
    table: str | None = option(
        "hoodie.gcp.bigquery.sync.table_name", None, "The table's name there. Unset: `hoodie.table.name`.", Kind.TEXT
    )
    uses_manifest: bool = option(
        "hoodie.gcp.bigquery.sync.use_bq_manifest_file",
        False,
        "BigQuery reads a manifest of file paths, by one external table. false: a list of file names, by two external "
        "tables and a view.",
    )
    source_uri: str | None = option(
        "hoodie.gcp.bigquery.sync.source_uri",
        None,
        "The files below the table as BigQuery names them, such as `gs://lake/rides/city=*`. For the view alone.",
        Kind.TEXT,
    )
    source_uri_prefix: str | None = option(
        "hoodie.gcp.bigquery.sync.source_uri_prefix",
        None,
        "The table's folder, such as `gs://lake/rides/`, below which paths say the partition columns. Unset: the table "
        "has no partition columns in BigQuery.",
        Kind.TEXT,
    )
    partition_fields: tuple[str, ...] = option(
        "hoodie.gcp.bigquery.sync.partition_fields",
        (),
        "The columns that paths below the prefix say. Unset: the partition fields of the table.",
    )
    requires_filter: bool = option(
        "hoodie.gcp.bigquery.sync.require_partition_filter",
        False,
        "Queries of the table must have a filter of a partition column.",
    )
    connection: str | None = option(
        "hoodie.gcp.bigquery.sync.big_lake_connection_id",
        None,
        "The BigLake connection by which BigQuery reads the files.",
        Kind.TEXT,
    )
    lists_by_metadata: bool = option(
        "hoodie.gcp.bigquery.sync.use_file_listing_from_metadata",
        True,
        "The metadata table tells the files, where it is up to date. false: folders are listed.",
    )


def key_of_bigquery(name: str) -> str:
    """The key of the option of a field."""
    return key_of(BigQueryOptions, name)
