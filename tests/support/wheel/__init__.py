"""What `make wheel` runs in a bare environment: scripts of a user's, and the matrix of extras, PySparks and Pythons."""
