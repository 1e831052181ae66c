"""`python -m pyhudi.cli` is `pyhudi`."""

from pyhudi.cli.main import run

run()
