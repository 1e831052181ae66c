"""The page of a table, as a file and in a browser."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.report.html import report_html

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = "</script><img src=x onerror=document.title=1>"


def html_of(table: pyhudi.HudiTable) -> str:
    report = table.report()
    assert not isinstance(report, str)
    return report.html


def facts_of(page: str) -> dict[str, Any]:
    (data,) = re.findall(r'id="data">([A-Za-z0-9+/=]+)</script>', page)
    facts: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(data)))
    return facts


@pytest.fixture(name="table")
def _table(tmp_path: Path) -> pyhudi.HudiTable:
    path = str(tmp_path / "t")
    rows = pa.table({"id": ["a", "b", "c"], "city": ["rome", "oslo", HOSTILE.replace("/", "")], "n": [1, 2, 3]})
    pyhudi.write_hudi(path, rows, record_key="id", partition_by="city")
    table = pyhudi.HudiTable.open(path)
    table.upsert(pa.table({"id": ["a"], "city": ["rome"], "n": [7], "more": ["x"]}))
    return table


def test_the_page_says_what_the_table_says(table: pyhudi.HudiTable, tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    assert table.report(path) == str(path)

    facts = facts_of(path.read_text("utf-8"))

    assert [row[0] for row in facts["timeline"]] == [entry.instant_time for entry in table.history()]
    assert [row[5:8] for row in facts["timeline"]] == [[0, 1, 0], [3, 0, 0]]
    assert sorted(row[0] for row in facts["partitions"]) == sorted(table.partitions()["partition_path"].to_pylist())
    files = facts["files"]
    first = [sum(files["slices"][:group]) for group in range(len(files["id"]))]
    assert [files["base"][at] for at in first] == table.files()["size_bytes"].to_pylist()
    assert sum(files["base"]) == sum(file.stat().st_size for file in (tmp_path / "t").rglob("*.parquet"))
    assert [change for _, change in facts["schema_changes"]] == ["more added as string"]
    assert ["hoodie.table.recordkey.fields", "id"] in facts["properties"]


def test_the_page_has_older_slices_and_the_schema_changes_of_archived_commits(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false"}
    pyhudi.write_hudi(path, pa.table({"id": ["a"], "n": [1]}), record_key="id", options=options)
    table = pyhudi.HudiTable.open(path)
    results = [
        table.upsert(pa.table({"id": ["a"], "n": [n], **{name: ["x"] for name in more}}), options=options)
        for n, more in enumerate((["first"], ["first", "second"], ["first", "second"], ["first", "second", "third"]))
    ]
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    table.archive(options={**options, **limits})
    assert [entry.is_archived for entry in table.history()][-3:] == [True] * 3

    facts = facts_of(html_of(table))

    assert facts["files"]["slices"] == [5]
    assert facts["files"]["instant"] == [entry.instant_time for entry in table.history() if entry.action == "commit"]
    sizes = {file.stem.rpartition("_")[2]: file.stat().st_size for file in Path(path).glob("*.parquet")}
    assert facts["files"]["base"] == [sizes[instant] for instant in facts["files"]["instant"]]
    assert facts["schema_changes"] == [
        [results[0].instant_time, "first added as string"],
        [results[1].instant_time, "second added as string"],
        [results[3].instant_time, "third added as string"],
    ]


def test_without_a_path_a_notebook_shows_the_page(table: pyhudi.HudiTable) -> None:
    report = table.report()
    assert not isinstance(report, str)
    assert report._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert len(repr(report)) < 200


def test_the_hosts_garbage_collector_stays_as_it_is(
    table: pyhudi.HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a library must not switch the host's collector")

    for name in ("disable", "enable", "freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, refused)

    assert table.report(tmp_path / "t.html") == str(tmp_path / "t.html")
    table.health()
    table.files()
    table.stats()


def test_a_page_for_another_store_is_refused(table: pyhudi.HudiTable) -> None:
    with pytest.raises(pyhudi.ConfigError, match="expected a path of this machine"):
        table.report("s3a://lake/t.html")


def test_hostile_text_can_not_leave_the_data() -> None:
    page = report_html({"name": HOSTILE, "path": "@data@ @script@"})

    assert HOSTILE not in page
    assert page.count("</script>") == 2
    assert facts_of(page) == {"name": HOSTILE, "path": "@data@ @script@"}


def test_secrets_among_the_properties_are_hidden(table: pyhudi.HudiTable, tmp_path: Path) -> None:
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "\nhoodie.my.password=hunter2\n")

    facts = facts_of(str(getattr(pyhudi.HudiTable.open(str(tmp_path / "t")).report(), "html")))  # noqa: B009

    assert ["hoodie.my.password", "(hidden)"] in facts["properties"]
    assert "hunter2" not in json.dumps(facts)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_shows_each_tab_sorts_searches_and_changes_its_colours(
    table: pyhudi.HudiTable, tmp_path: Path, theme: str
) -> None:
    clicks = """
    <script>(async () => {
      const out = {}, $ = s => document.querySelector(s), wait = ms => new Promise(r => setTimeout(r, ms));
      while (!document.documentElement.dataset.ready) await wait(20);
      for (const tab of [...document.querySelectorAll("nav button")]) {
        tab.click();
        out[tab.textContent] = $("main").textContent.length + 1000 * document.querySelectorAll("canvas").length;
      }
      const open = name => [...document.querySelectorAll("nav button")].find(b => b.textContent === name).click();
      open("Partitions");
      const cells = () => [...document.querySelectorAll("tbody tr")].map(tr => tr.children[0].textContent);
      $("th").click(); out.up = cells();
      $("th").click(); out.down = cells();
      const files = () => document.querySelectorAll("tbody tr").length;
      $("input").value = "OSL"; $("input").dispatchEvent(new Event("input")); await wait(300);
      out.search = cells();
      open("Files"); out.newest = files();
      $(".older input").click(); out.slices = files();
      $(".older input").click(); out.newest_again = files();
      const before = document.documentElement.dataset.theme;
      $("#theme").click(); out.theme = [before, document.documentElement.dataset.theme];
      out.images = document.images.length;
      document.body.textContent = "RESULT" + JSON.stringify(out) + "END";
    })();</script></body>"""
    page = html_of(table)
    path = tmp_path / "clicks.html"
    path.write_text(page.replace("</body>", clicks), "utf-8")
    dark = ["--blink-settings=preferredColorScheme=0"] if theme == "dark" else []
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", *dark,
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    (text,) = re.findall(r"<body>RESULT(.*)END</body>", dom, re.DOTALL)
    out = json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))

    assert out["Writes"] > 3000  # three charts
    assert all(out[tab] > 20 for tab in ("Overview", "Timeline", "Files", "Partitions", "Schema", "Properties"))
    assert out["up"] == sorted(table.partitions()["partition_path"].to_pylist())
    assert out["down"] == out["up"][::-1]
    assert out["search"] == ["oslo"]
    assert (out["newest"], out["slices"], out["newest_again"]) == (3, 4, 3)
    assert out["theme"] == ([theme, "light"] if theme == "dark" else [theme, "dark"])
    assert out["images"] == 0
