"""Prints docs/options.md."""

from pyhudi.model.options.page import options_page

print(options_page(), end="")
