"""docs/procedures.md is made from the registry of procedures."""

from __future__ import annotations

from pyhudi.sql.procedures.page import procedures_page
from tests.support.source import ROOT


def test_the_page_of_procedures_is_what_the_registry_says():
    assert (ROOT / "docs" / "procedures.md").read_text() == procedures_page()
