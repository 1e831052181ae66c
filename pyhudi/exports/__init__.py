"""The table's files under the metadata of other formats: Delta, Iceberg. No data file is copied or touched."""
