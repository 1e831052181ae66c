"""Listing and data skipping by the metadata table, against the rows and files that Apache Hudi says."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.errors import MetadataTableDamaged
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip import skip
from pyhudi.queries.skip.skip import MetadataTableIgnored, metadata_source
from pyhudi.queries.skip.skipper import Answer, SkipRequest
from pyhudi.queries.skip.statistics import ColumnStatistics
from pyhudi.storage import open_storage
from pyhudi.view.file_system_view import FileSystemView
from tests.support.golden.folder import SHARED, Golden

# Where real Hudi skips more: it has no rule for not-a-number, and takes LIKE 'w1%' for = 'w1', which loses rows.
# On boolean columns alone and on keys it asks the record index, or both bounds of a flag, which we don't.
_MORE_FILES = {"q > 60.5": 9, "v + 1 = 106": 9, "w like 'w1%'": 4, "id = 'id105'": 2, "id in ('id5', 'id250')": 3}


@pytest.mark.thorough
@pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", "1.2.0"])
def test_queries_return_all_rows_and_open_the_files_that_hudi_opens(hudi: str, golden: Golden) -> None:
    path, description = golden(hudi, "skipping_a_cow")
    table = HudiTable.open(path)
    asked = 0
    for query in description["expected"]["queries"]:
        scan = table.scan(columns=["id"], where=query["where"])
        rows = scan.to_arrow().num_rows
        right = query.get("keys_without_skipping") or query["keys"]
        assert rows == len(right), query["where"]
        files = scan.files().num_rows
        assert files <= _MORE_FILES.get(query["where"], len(query["files"])), query["where"]
        asked += 1
    assert asked > 30


def test_a_skipped_file_is_reported_by_explain(golden: Golden) -> None:
    path, _ = golden("1.2.0", "skipping_a_cow")
    text = HudiTable.open(path).scan(where="v = 105").explain()
    assert "6 by statistics of partitions (column v)" in text
    assert "2 by column statistics (column v)" in text
    assert "from the metadata table" in text
    without = HudiTable.open(path).scan(where="v = 105", options={"hoodie.metadata.enable": "false"}).explain()
    assert "column statistics" not in without
    assert "from the metadata table" not in without


class _Damaged:
    name = "a damaged index"

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        raise MetadataTableDamaged("a block of the index is damaged.")


def test_a_skipper_that_fails_skips_nothing_and_the_next_one_is_asked(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = golden("1.2.0", "skipping_a_cow")
    monkeypatch.setattr(skip, "SKIPPERS", (_Damaged(), ColumnStatistics()))
    scan = HudiTable.open(path).scan(where="v > 105")
    with pytest.warns(MetadataTableIgnored, match="a block of the index is damaged"):
        steps = scan.plan.skipped
    assert [step.by for step in steps] == ["column statistics"]
    every_file = HudiTable.open(path).scan(where="v > 105", options={"hoodie.metadata.enable": "false"})
    assert scan.to_arrow().num_rows == every_file.to_arrow().num_rows > 0


def _with_metadata() -> list[Path]:
    places = [*(SHARED / "golden").glob("*/*.zip"), *(SHARED / "fixtures" / "hudi-tables").glob("*.zip")]
    return sorted(place for place in places if _has_metadata(place))


def _has_metadata(place: Path) -> bool:
    with zipfile.ZipFile(place) as archive:
        return any("/.hoodie/metadata/files/" in name for name in archive.namelist())


@pytest.mark.thorough
def test_listings_of_all_metadata_tables_show_the_file_groups_that_folders_show(tmp_path: Path) -> None:
    looked = 0
    for number, place in enumerate(_with_metadata()):
        folder = tmp_path / str(number)
        with zipfile.ZipFile(place) as archive:
            archive.extractall(folder)
        table = next(entry for entry in folder.iterdir() if entry.name != "__MACOSX")
        meta = MetaClient.load(open_storage(str(table)))
        if "files" not in meta.config.metadata_partitions:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error", MetadataTableIgnored)
            known = metadata_source(meta)
        assert known is not None, place
        listed = FileSystemView.load(meta, listed=listed_files(known.table))
        folders = FileSystemView.load(meta)
        assert _groups(listed) == _groups(folders), place
        looked += 1
    assert looked > 40 or not looked


def _groups(view: FileSystemView) -> dict[str, list[tuple[object, ...]]]:
    return {
        path: [(slices.group, slices.base_file, slices.log_files) for slices in view.slices(path)]
        for path in view.partitions()
        if view.slices(path)
    }


def test_a_metadata_table_that_lacks_a_commit_is_ignored_with_a_warning(golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_compacted_a")
    rows = HudiTable.open(path).to_arrow().num_rows
    timeline = path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    newest = sorted(timeline.glob("2*_*.deltacommit"))[-1]
    for file in timeline.glob(f"{newest.name.split('_')[0]}*"):
        file.unlink()
    with pytest.warns(MetadataTableIgnored, match=f"lacks the instants {newest.name.split('_')[0]}"):
        assert HudiTable.open(path).to_arrow().num_rows == rows


@pytest.mark.parametrize("damage", ["no folder", "no properties", "cut file"])
def test_a_damaged_metadata_table_loses_no_rows(damage: str, golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_compacted_a")
    rows = HudiTable.open(path).to_arrow().num_rows
    metadata = path / ".hoodie" / "metadata"
    if damage == "no folder":
        metadata.rename(path.parent / "gone")
    elif damage == "no properties":
        (metadata / ".hoodie" / "hoodie.properties").unlink()
    else:
        for file in (metadata / "files").glob("*.hfile"):
            file.write_bytes(file.read_bytes()[:-100])
    with pytest.warns(MetadataTableIgnored):
        assert HudiTable.open(path).to_arrow().num_rows == rows


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_metadata_table_whose_log_file_lost_blocks_loses_no_rows(damage: str, golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_all_mor")
    rows = HudiTable.open(path).to_arrow().num_rows
    log = sorted((path / ".hoodie" / "metadata" / "files").glob(".files-*_2*.log.*"))[-1]
    log.write_bytes(log.read_bytes()[:-50]) if damage == "cut" else log.unlink()
    with pytest.warns(MetadataTableIgnored):
        assert HudiTable.open(path).to_arrow().num_rows == rows


def test_a_metadata_table_that_lacks_the_first_commit_after_it_was_built_is_ignored(golden: Golden) -> None:
    path, _ = golden("1.2.0", "skipping_a_cow")
    rows = HudiTable.open(path).to_arrow().num_rows
    timeline = path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    oldest = sorted(timeline.glob("2*_*.deltacommit"))[0].name.split("_")[0]
    for file in [*timeline.glob(f"{oldest}*"), *path.glob(f".hoodie/metadata/*/.*_{oldest}.log.*")]:
        file.unlink()
    with pytest.warns(MetadataTableIgnored, match=oldest):
        assert HudiTable.open(path).to_arrow().num_rows == rows
