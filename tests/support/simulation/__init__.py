"""A deterministic simulator of many writers: one seed, one schedule (docs/concurrency.md)."""
