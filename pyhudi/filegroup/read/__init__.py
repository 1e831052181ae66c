"""Reading file slices: base file and log files merged."""
