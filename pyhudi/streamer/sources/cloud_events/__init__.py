"""Events of object stores, and the files that they name."""
