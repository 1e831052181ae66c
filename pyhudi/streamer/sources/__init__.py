"""Sources of pipelines, one per file."""
