"""Reporters of metrics, one file each; the rows are in `pyhudi/listeners/metrics.py`."""
