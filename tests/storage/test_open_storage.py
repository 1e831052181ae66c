"""The storage that each form of a path opens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyhudi.errors import ConfigError
from pyhudi.storage import LocalStorage, MemoryStorage, open_storage


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
def test_forms_of_a_local_path_are_one(form: str, tmp_path: Path) -> None:
    assert open_storage(form.format(tmp_path)) == LocalStorage(str(tmp_path))


def test_a_path_object_and_a_relative_path_are_taken(tmp_path: Path) -> None:
    assert open_storage(tmp_path).root == str(tmp_path)
    assert open_storage("some/folder").root == os.path.abspath("some/folder")


def test_nothing_is_percent_decoded() -> None:
    assert open_storage("file:///data/a%20b").root == "/data/a%20b"


def test_a_colon_in_a_folder_name_is_no_scheme() -> None:
    assert open_storage("/data/12:30").root == "/data/12:30"
    assert open_storage("data/12:30").root.endswith("data/12:30")


def test_memory_names_are_opened() -> None:
    assert isinstance(open_storage("memory://opened"), MemoryStorage)
    assert open_storage("memory://opened").root == "memory://opened"


@pytest.mark.parametrize(
    ("path", "message"),
    [("", "empty"), ("http://x/y", "http"), ("dbfs:/x", "dbfs"), ("file://otherhost/x", "otherhost")],
)
def test_what_cannot_be_opened_is_refused(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_storage(path)
