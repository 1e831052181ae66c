"""The table's diary and its properties: load, write, draw times, show that a writer lives."""
