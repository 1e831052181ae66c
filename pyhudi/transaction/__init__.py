"""Changes of any Hudi table, the metadata table included: instants, the commit, rollbacks, pending plans."""
