"""The schemas of metadata records are those in files that Hudi wrote."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pyhudi.formats.hfile import HFileReader
from pyhudi.formats.timeline.bodies import AvroType
from pyhudi.metadata.schema import record_schema, stored_record_schema
from pyhudi.storage.local import LocalStorage
from tests.support.golden.folder import GoldenTable


def without_docs(avro: AvroType) -> AvroType:
    if isinstance(avro, dict):
        return {name: without_docs(value) for name, value in avro.items() if name != "doc"}
    return [without_docs(value) for value in avro] if isinstance(avro, list) else avro


@pytest.mark.parametrize(("release", "version"), [("0.15.0", 6), ("1.0.2", 8), ("1.2.0", 9)])
def test_the_schemas_are_those_in_hudi_s_files(
    golden: Callable[[str, str], GoldenTable], release: str, version: int
) -> None:
    folder, _ = golden(release, "mdt_all_cow")
    storage = LocalStorage(str(folder))
    path = next(entry.path for entry in storage.walk(".hoodie/metadata") if entry.name.endswith(".hfile"))
    with storage.open_input(path) as source:
        text = HFileReader(source, path).schema_json
    assert text is not None
    theirs, ours = json.loads(text), json.loads(stored_record_schema(version))
    assert ours == without_docs(theirs)
    assert json.loads(record_schema(version))["fields"] == ours["fields"][5:]
