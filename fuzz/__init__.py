"""The fuzzer: `make fuzz`, or `python -m fuzz`. Damaged and hostile inputs for every decoder.

How it works, and what to do with a finding: docs/contributing/fuzzing.md.
"""

import os

# The limit of a process's memory counts what it maps, and Arrow's other pools map a gigabyte at a time.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
