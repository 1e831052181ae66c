"""The writing of a file group's files: base files, log files, change logs, markers and statuses."""
