"""A table whose only write was rolled back takes the next one as a new table would."""

from __future__ import annotations

import pytest

from pyhudi.model.options import WriteOptions
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_it_is_written_to_again(version: str, table_type: str, index: str) -> None:
    table = MergeOnRead(
        version,
        datasource_write_table_type=table_type,
        index_type=index,
        datasource_write_payload_class="org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    )
    table.upsert(("k0", "x", 0, 0))
    last = table.meta.timeline.last_commit()
    assert last is not None
    rollback_write(table.storage, last.requested_time, WriteOptions.parse(DEFAULTS), table.engine)

    table.upsert(("k0", "x", 0, 1), ("k1", "y", 0, 2))

    assert TestTable.rows(table) == [("k0", "x", 0, 1), ("k1", "y", 0, 2)]
