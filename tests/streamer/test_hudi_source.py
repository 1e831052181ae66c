"""A Hudi table as a source: its commits in batches, by completion time from version 8 on, by requested time below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.errors import ConfigError, RangeNotReadable, TableNotFound

V1, V2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"
STRATEGY = "hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy"
ALL = {STRATEGY: "READ_UPTO_LATEST_COMMIT"}


def source(tmp_path: Path, commits: int, version: int = 9, first: int = 0) -> list[Any]:
    for number in range(first, first + commits):
        write_hudi(tmp_path / "s", pa.table({"id": [number], "v": [number]}), record_key="id", table_version=version)
    return list(reversed(HudiTable.open(tmp_path / "s").history()))


def config(tmp_path: Path, **more: object) -> dict[str, object]:
    path = {"hoodie.streamer.source.hoodieincr.path": str(tmp_path / "s"), "source-class": "HoodieIncrSource"}
    return {"target-base-path": str(tmp_path / "t"), "record_key": "id", "op": "INSERT", **path, **more}


def ids(tmp_path: Path) -> list[int]:
    return sorted(HudiTable.open(tmp_path / "t").scan(["id"], meta_columns=False).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("version", "key", "other"), [(9, V2, V1), (6, V1, V2)])
def test_commits_come_in_batches_and_the_checkpoint_has_the_form_of_the_version(
    tmp_path: Path, version: int, key: str, other: str
) -> None:
    commits = source(tmp_path, 3, version)
    settings = config(tmp_path, **ALL, **{"hoodie.streamer.source.hoodieincr.num_instants": 2})

    assert Streamer(settings).run().rows == 2
    extra = HudiTable.open(tmp_path / "t").history()[0].extra
    assert extra[key] == (commits[1].completion_time if version == 9 else commits[1].instant_time)
    assert other not in extra
    assert Streamer(settings).run().rows == 1
    assert Streamer(settings).run().rounds == 0
    source(tmp_path, 1, version, first=3)
    assert Streamer(settings).run().rows == 1
    assert ids(tmp_path) == [0, 1, 2, 3]


def test_without_a_checkpoint_the_run_says_where_it_may_begin(tmp_path: Path) -> None:
    source(tmp_path, 3)

    with pytest.raises(ConfigError, match=r"READ_UPTO_LATEST_COMMIT for all rows"):
        Streamer(config(tmp_path)).run()
    assert Streamer(config(tmp_path, **{STRATEGY: "READ_LATEST"})).run().rows == 1
    assert ids(tmp_path) == [2]


def test_a_checkpoint_of_the_other_form_means_its_commit_and_one_by_hand_says_its_kind(tmp_path: Path) -> None:
    commits = source(tmp_path, 3)
    write_hudi(tmp_path / "t", pa.table({"id": [100], "v": [1]}), record_key="id")
    HudiTable.open(tmp_path / "t").maintenance.set_checkpoint(commits[0].instant_time, key=V1)

    assert Streamer(config(tmp_path)).run().rows == 2
    by_hand = f"resumeFromInstantRequestTime:{commits[1].instant_time}"
    assert Streamer(config(tmp_path, op="UPSERT", checkpoint=by_hand)).run().rows == 1
    by_hand = f"resumeFromInstantCompletionTime:{commits[0].completion_time}"
    assert Streamer(config(tmp_path, op="UPSERT", checkpoint=by_hand)).run().rows == 2
    for wrong in (commits[0].instant_time, "resumeFromInstant:1", "00"):
        with pytest.raises(ConfigError, match="resumeFromInstantCompletionTime:TIME"):
            Streamer(config(tmp_path, checkpoint=wrong)).run()
    unknown = "resumeFromInstantRequestTime:20200101000000000"
    with pytest.raises(ConfigError, match="its completion time is not known"):
        Streamer(config(tmp_path, checkpoint=unknown)).run()


def test_a_table_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match="No Hudi table at"):
        Streamer(config(tmp_path, **ALL))
    with pytest.raises(ConfigError, match=r"hoodieincr\.path is missing"):
        Streamer(config(tmp_path, **{"hoodie.streamer.source.hoodieincr.path": None}))


FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"


def test_commits_whose_files_were_cleaned_are_an_error_that_says_the_way_on(tmp_path: Path) -> None:
    keep = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}

    def written(number: int) -> None:
        write_hudi(tmp_path / "s", pa.table({"id": [number], "v": [number]}), record_key="id", options=keep)

    written(0)
    settings = config(tmp_path, **ALL)
    Streamer(settings).run()
    for number in range(1, 9):
        written(number)

    with pytest.raises(RangeNotReadable, match=rf"deleted by cleaning.*{FALLBACK}=true"):
        Streamer(settings).run()
    assert ids(tmp_path) == [0]
    Streamer({**settings, FALLBACK: True}).run(until_empty=True)
    assert ids(tmp_path) == list(range(9))


def test_options_of_reads_are_the_hudi_sources_alone(tmp_path: Path) -> None:
    source(tmp_path, 3)
    filtered = config(tmp_path, **ALL, **{"hoodie.datasource.read.incr.filters": "v > 0"})
    assert Streamer(filtered).run().rows == 2
    with pytest.raises(ConfigError, match=r"is of reads: in a pipeline HoodieIncrSource takes .*JsonDFSSource takes"):
        Streamer({**filtered, "source-class": "JsonDFSSource"})
    with pytest.raises(ConfigError, match=r"begin\.instanttime is of reads"):
        Streamer({**filtered, "hoodie.datasource.read.begin.instanttime": "earliest"})
    with pytest.raises(ConfigError, match="Use BLOCK, the default, or FAIL"):
        Streamer({**filtered, "hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME"})


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_services_at_the_source_bring_no_row_again(tmp_path: Path, kind: str, version: int) -> None:
    options = {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}

    def written(*numbers: int) -> None:
        rows = pa.table({"id": numbers, "v": numbers})
        write_hudi(tmp_path / "s", rows, record_key="id", options=options)

    written(0, 1)
    written(1, 2)
    settings = config(tmp_path, **ALL)
    Streamer(settings).run()
    HudiTable.open(tmp_path / "s").cluster()
    assert Streamer(settings).run().rows == 0
    written(3)
    if kind == "MERGE_ON_READ":
        HudiTable.open(tmp_path / "s").compact()
    written(4)
    assert Streamer(settings).run(until_empty=True).rows == 2
    assert ids(tmp_path) == [0, 1, 2, 3, 4]


def test_the_columns_of_the_source_may_come_go_and_widen(tmp_path: Path) -> None:
    settings = config(tmp_path, **ALL)
    nulls = {"hoodie.write.set.null.for.missing.columns": "true"}
    first = pa.table({"id": [1], "v": pa.array([1], pa.int32()), "gone": ["x"]})
    write_hudi(tmp_path / "s", first, record_key="id")
    Streamer(settings).run()
    second = pa.table({"id": [2], "v": [2**40], "gone": ["y"], "new": [1.5]})
    write_hudi(tmp_path / "s", second, record_key="id", schema_mode="merge")
    write_hudi(tmp_path / "s", pa.table({"id": [3], "v": [3], "new": [2.5]}), record_key="id", options=nulls)
    Streamer(settings).run()

    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().sort_by("id").to_pylist()
    assert [[*row.values()] for row in found] == [[1, 1, "x", None], [2, 2**40, "y", 1.5], [3, 3, None, 2.5]]


def nothing(rows: pa.Table) -> pa.Table:
    return rows.slice(0, 0)


def test_rounds_without_rows_go_on_before_there_is_a_table(tmp_path: Path) -> None:
    source(tmp_path, 2)
    one = {"hoodie.streamer.source.hoodieincr.num_instants": 1, "transformer-class": f"{__name__}:nothing"}
    changes = {"hoodie.pyhudi.streamer.apply.changes.keys": "id"}
    changes["hoodie.pyhudi.streamer.apply.changes.sequence.by"] = "v"
    streamer = Streamer(config(tmp_path, op="UPSERT", **ALL, **one, **changes))

    checkpoints = [streamer.run().checkpoint for _ in range(3)]
    assert checkpoints == [*(commit.completion_time for commit in HudiTable.open(tmp_path / "s").history()[::-1]), None]
