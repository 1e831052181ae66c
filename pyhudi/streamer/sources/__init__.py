"""Sources of pipelines, one a file."""
