"""The command `pyhudi`: one call of a table's method a run, for scripts, schedulers and people."""
