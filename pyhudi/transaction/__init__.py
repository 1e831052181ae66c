"""How any Hudi table changes, the metadata table included: instants, the commit, undoing, pending plans."""
