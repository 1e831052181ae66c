"""Java's spellings: hashes, texts of numbers and nested values, dates by Joda's patterns, time zones."""
