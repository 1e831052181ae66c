"""Work on footers, column chunks and pages of Parquet that pyarrow doesn't do, or not safely."""
