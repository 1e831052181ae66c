"""Key generation as writes use it: the two spellings of COMPLEX keys, and what contradicts the table."""

from __future__ import annotations

import pytest

from pyhudi.errors import ConfigError, KeyGenError
from tests.support.tables.small import TestTable

COMPLEX = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}


def keys(table: TestTable) -> set[str]:
    return {key for (key,) in table.rows(("_hoodie_record_key",))}


@pytest.mark.parametrize(("new_encoding", "key"), [("true", "a"), ("false", "id:a")])
def test_a_table_below_version_9_keeps_the_spelling_of_its_keys(new_encoding: str, key: str) -> None:
    made = {**COMPLEX, "hoodie.write.table.version": "6", "hoodie.write.complex.keygen.new.encoding": new_encoding}
    table = TestTable(options=made)
    table.upsert(("a", "x", 1, 10))
    assert keys(table) == {key}

    # The next writer says nothing, or the opposite: the keys in the files decide.
    for options in (COMPLEX, {**made, "hoodie.write.complex.keygen.new.encoding": "false"}, made):
        again = TestTable(table.storage, {**options, "hoodie.write.table.version": "6"})
        result = again.upsert(("a", "x", 2, 11))
        assert (result.updated, result.inserted) == (1, 0)
    assert keys(table) == {key}


def test_an_upsert_that_would_make_silent_duplicates_is_refused() -> None:
    table = TestTable()  # version 9, SIMPLE: the key is the bare value
    table.upsert(("a", "x", 1, 10))
    from pyhudi.timeline.table_properties import update_table_config

    update_table_config(table.storage, {"hoodie.table.keygenerator.type": "COMPLEX"})
    with pytest.raises(KeyGenError, match="silent duplicates"):
        table.upsert(("a", "x", 2, 11))
    assert table.rows() == [("a", "x", 1, 10)]


def test_another_key_generator_than_the_table_s_is_refused() -> None:
    table = TestTable()
    table.upsert(("a", "x", 1, 10))
    with pytest.raises(ConfigError, match="SIMPLE"):
        TestTable(table.storage, COMPLEX).upsert(("a", "x", 2, 11))


def test_the_table_s_generator_may_be_named_in_any_way() -> None:
    table = TestTable()
    table.upsert(("a", "x", 1, 10))
    for name in ("org.apache.hudi.keygen.SimpleKeyGenerator", "SIMPLE"):
        TestTable(table.storage, {"hoodie.datasource.write.keygenerator.class": name}).upsert(("a", "x", 2, 11))
    assert table.rows() == [("a", "x", 2, 11)]


def test_a_user_s_own_generator_is_named_by_every_writer() -> None:
    own = {"hoodie.datasource.write.keygenerator.class": "tests.support.values.own_keys:ShoutedKey"}
    table = TestTable(options=own)
    table.upsert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    assert keys(table) == {"A"}

    with pytest.raises(ConfigError, match="module:Class"):
        TestTable(table.storage).upsert(("a", "x", 3, 12))
