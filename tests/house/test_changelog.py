"""CHANGELOG.md is made from the fragments in `changes/`, a heading for each topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.__main__ import changelog, fragments
from tests.support.source import ROOT

EARLIER = (
    "# Changelog\n\n## 0.2.0\n\n### Reading\n\nOld text of this version.\n\n## 0.1.0\n\n### Locks\n\nThe first lock.\n"
)


def test_every_fragment_is_named_by_its_topic_and_has_its_heading_in_the_changelog():
    texts = fragments(ROOT / "changes")
    page = changelog("", "0.1.0", texts)
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    assert headings == [f"### {topic.replace('-', ' ').capitalize()}" for topic in texts]
    assert "](../" not in page


@pytest.mark.parametrize("name", ["0001-locks", "Locks", "locks_and_more", "locks--more"])
def test_a_fragment_of_another_name_is_refused(name: str, tmp_path: Path):
    (tmp_path / f"{name}.md").write_text("Locks.")
    with pytest.raises(ValueError, match="lower-case words"):
        fragments(tmp_path)


def test_the_section_of_a_version_is_recreated_and_those_of_earlier_versions_stay():
    texts = {"many-writers": "They wait. [Locks](../docs/locks.md).", "reading": "One.\n\nTwo."}
    page = changelog(EARLIER, "0.2.0", texts)
    assert page.partition("\n## ")[2] == (
        "0.2.0\n\n### Many writers\n\nThey wait. [Locks](docs/locks.md).\n\n### Reading\n\nOne.\n\nTwo.\n\n"
        "## 0.1.0\n\n### Locks\n\nThe first lock.\n"
    )
    assert changelog(page, "0.2.0", texts) == page


def test_a_new_version_comes_before_the_others():
    page = changelog(EARLIER, "0.3.0", {"reading": "Faster."})
    assert [line for line in page.splitlines() if line.startswith("## ")] == ["## 0.3.0", "## 0.2.0", "## 0.1.0"]
    assert "Old text of this version." in page
