"""Writing files of a file group: base files, log files, change logs, markers and statuses."""
