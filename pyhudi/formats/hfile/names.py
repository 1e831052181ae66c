"""Names in base files of the metadata table. Source: docs/formats/hfile.md, "Meta blocks", "File info"."""

__all__ = ["BLOOM_FILTER", "BLOOM_FILTER_TYPE", "GREATEST_KEY", "LEAST_KEY"]

BLOOM_FILTER, BLOOM_FILTER_TYPE = "bloomFilter", "bloomFilterTypeCode"
LEAST_KEY, GREATEST_KEY = "minRecordKey", "maxRecordKey"
