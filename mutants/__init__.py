"""Breaks single lines of PyHudi and looks whether a test notices: `make mutants`, see docs/contributing/mutants.md."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
