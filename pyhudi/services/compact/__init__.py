"""Compaction and log compaction: log files are merged."""
