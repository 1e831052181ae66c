"""Writing files of a file group: base files, log files, change logs, and what is noted of them."""
