"""The rewriting of file slices for table services: compaction, log compaction, clustering."""
