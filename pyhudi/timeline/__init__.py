"""The timeline and the table's properties: load, write, instant times, heartbeats."""
