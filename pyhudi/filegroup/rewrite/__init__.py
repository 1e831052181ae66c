"""Rewriting file slices for table services: compaction, log compaction, clustering."""
