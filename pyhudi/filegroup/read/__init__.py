"""The reading of file slices: base file and log files, merged."""
