"""Measurements: `make bench`, or `python -m bench --quick`. Figures are ratios to a floor measured in the same run."""
