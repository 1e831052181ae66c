"""The page of a table, as a file and in a browser."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.display import readable_bytes
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import parse_instant_time
from pyhudi.report.figures import offsets, readable_time
from pyhudi.report.html import report_html
from pyhudi.storage.local import LocalStorage

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = "</script><img src=x onerror=document.title=1>"


def html_of(table: pyhudi.HudiTable) -> str:
    report = table.inspect.report()
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
    assert table.inspect.report(path) == str(path)

    facts = facts_of(path.read_text("utf-8"))

    assert [row[0] for row in facts["timeline"]] == [entry.instant_time for entry in table.history()]
    assert [row[5:8] for row in facts["timeline"]] == [[0, 1, 0], [3, 0, 0]]
    assert sorted(row[0] for row in facts["partitions"]) == sorted(
        table.inspect.partitions()["partition_path"].to_pylist()
    )
    files = facts["files"]
    first = [sum(files["slices"][:group]) for group in range(len(files["id"]))]
    assert [files["base"][at] for at in first] == table.inspect.files()["size_bytes"].to_pylist()
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
    table.maintenance.archive(options={**options, **limits})
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
    report = table.inspect.report()
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

    assert table.inspect.report(tmp_path / "t.html") == str(tmp_path / "t.html")
    table.inspect.health()
    table.inspect.files()
    table.inspect.stats()


def test_a_page_for_another_store_is_refused(table: pyhudi.HudiTable) -> None:
    with pytest.raises(pyhudi.ConfigError, match="expected a path on this machine"):
        table.inspect.report("s3a://lake/t.html")


def test_hostile_text_can_not_leave_the_data() -> None:
    facts = {"name": HOSTILE, "path": "@data@ @script@", "figures": [[HOSTILE, HOSTILE, HOSTILE, f'"{HOSTILE}']]}
    page = report_html(facts)

    assert HOSTILE not in page
    assert page.count("</script>") == 2
    assert facts_of(page) == facts


def test_secrets_among_the_properties_are_hidden(table: pyhudi.HudiTable, tmp_path: Path) -> None:
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "\nhoodie.my.password=hunter2\n")

    facts = facts_of(str(getattr(pyhudi.HudiTable.open(str(tmp_path / "t")).inspect.report(), "html")))  # noqa: B009

    assert ["hoodie.my.password", "(hidden)"] in facts["properties"]
    assert "hunter2" not in json.dumps(facts)


def figures_of(page: str) -> list[tuple[str, ...]]:
    """The first figures as the page's HTML has them, without its script: name, value, and what more there is."""
    (figures,) = re.findall(r'<dl id="figures".*?>(.*?)</dl>', page, re.S)
    assert page.index('<dl id="figures"') < page.index('<nav id="tabs"') < page.index('<main id="main"')
    cards = re.findall(r'<dt>(.*?)</dt><dd class=".*?">(.*?)</dd>(?:<dd><small>(.*?)</small></dd>)?</div>', figures)
    return [(name, value, more) for name, value, more in cards]


def test_rows_size_the_last_write_and_health_come_first(table: pyhudi.HudiTable, tmp_path: Path) -> None:
    last = table.history()[0]
    table.cluster()  # moves rows, writes none

    figures = figures_of(html_of(table))

    assert [name for name, _, _ in figures] == ["rows", "size", "last write", "health"]
    assert figures[0] == ("rows", "3", "")
    assert figures[1][1] == readable_bytes(sum(table.inspect.files()["size_bytes"].to_pylist()))
    assert figures[2][2] == "upsert: 0 inserted, 1 updated, 0 deleted"
    assert figures[2][1].startswith(f"{parse_instant_time(str(last.completion_time), None):%Y-%m-%d %H:%M:%S} ")
    assert figures[3][1] == "healthy"


def test_rows_of_small_log_files_are_merged_and_counted(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})
    pyhudi.write_hudi(tmp_path, rows, record_key="id", table_type="MERGE_ON_READ")
    table = pyhudi.HudiTable.open(tmp_path)
    table.upsert(pa.table({"id": ["a"], "n": [7]}))
    table.delete(where="id = 'b'")
    assert table.inspect.files()["log_files"].to_pylist() == [2]

    assert figures_of(html_of(table))[0][:2] == ("rows", "2")


def test_where_a_count_costs_much_the_page_says_so(
    table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pyhudi.report.figures.FILES_TO_OPEN", 2)
    assert figures_of(html_of(table))[0] == ("rows", "not counted", "3 files to open; table.count() counts")

    monkeypatch.setattr("pyhudi.report.figures.BYTES_TO_MERGE", 1)
    path = tmp_path / "logs"
    pyhudi.write_hudi(path, pa.table({"id": ["a"]}), record_key="id", table_type="MERGE_ON_READ")
    logs = pyhudi.HudiTable.open(path)
    logs.upsert(pa.table({"id": ["a"]}))
    rows, value, why = figures_of(html_of(logs))[0]
    assert (rows, value) == ("rows", "not counted")
    assert why.endswith("of log and base files to merge; table.count() counts")


def test_a_page_is_made_of_a_table_with_a_damaged_file_and_says_what_is_damaged(table: pyhudi.HudiTable) -> None:
    damaged = Path(table.path) / str(table.inspect.files()["path"][0])
    damaged.write_bytes(b"PAR1")

    rows, value, why = figures_of(html_of(table))[0]

    assert (rows, value) == ("rows", "not counted")
    assert damaged.name in why


def test_a_table_without_a_commit_has_figures(tmp_path: Path) -> None:
    table = pyhudi.HudiTable.create(tmp_path / "new", pa.schema([("id", pa.string())]), record_key="id")

    figures = figures_of(html_of(table))

    assert [value for _, value, _ in figures[:3]] == ["0", "0 B", "none yet"]


@pytest.mark.parametrize(
    ("zone", "shown"), [("UTC", ["UTC", "UTC"]), ("LOCAL", ["+01:00", "+02:00"])], ids=["utc", "local"]
)
def test_each_time_has_its_zone_that_of_its_own_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, shown: list[str]
) -> None:
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    try:
        options = {"hoodie.table.timeline.timezone": zone}
        pyhudi.write_hudi(tmp_path, pa.table({"id": ["a"]}), record_key="id", options=options)
        meta = MetaClient.load(LocalStorage(str(tmp_path)))
        winter, summer = "20260115120000000", "20260715120000000"

        assert [readable_time(meta, one) for one in (winter, summer)] == [
            f"2026-01-15 12:00:00 {shown[0]}",
            f"2026-07-15 12:00:00 {shown[1]}",
        ]
        assert [zone for _, zone in offsets(meta, [winter, summer, summer])] == list(dict.fromkeys(shown))
        assert readable_time(meta, "00000000000001") == "00000000000001"
        assert readable_time(meta, HOSTILE) == HOSTILE
        assert facts_of(html_of(pyhudi.HudiTable.open(tmp_path)))["zones"][0][1] in ("UTC", "+01:00", "+02:00")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in")
def test_on_a_phone_no_word_is_broken_and_the_page_does_not_scroll_sideways(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "city": ["a-long-name-of-a-partition"], "n": [1]})
    options = {"hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.clean.commits.retained": "1"}
    options |= {"hoodie.metadata.enable": "false"}
    pyhudi.write_hudi(tmp_path, rows, record_key="id", partition_by="city", table_type="MERGE_ON_READ", options=options)
    table = pyhudi.HudiTable.open(tmp_path)
    report = table.inspect.report()
    assert not isinstance(report, str)
    words = """
    <script>(async () => {
      const out = {broken: [], wide: []}, wait = ms => new Promise(r => setTimeout(r, ms));
      while (!document.documentElement.dataset.ready) await wait(20);
      for (const tab of [...document.querySelectorAll("nav button")]) {
        tab.click();
        if (document.documentElement.scrollWidth > innerWidth) out.wide.push(tab.textContent);
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node; (node = texts.nextNode());) {
          if (node.parentElement.closest("script, h1, #path, .long, .uplot")) continue;
          for (const word of node.data.matchAll(/[\\w.]+/g)) {
            const range = document.createRange();
            range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) out.broken.push(word[0]);
          }
        }
      }
      out.width = innerWidth;
      parent.postMessage("RESULT" + JSON.stringify(out) + "END", "*");
    })();</script></body>"""
    inner = tmp_path / "inner.html"
    inner.write_text(report.html.replace("</body>", words), "utf-8")
    page = tmp_path / "phone.html"  # a window of a headless browser has 500 pixels at least
    page.write_text(
        f"""<body><iframe id="f" src="{inner.as_uri()}" style="width:360px;height:700px;border:0"></iframe>
        <script>addEventListener("message", e => document.body.textContent = e.data)</script></body>"""
    )

    out = result_of(page, tmp_path)

    assert out == {"broken": [], "wide": [], "width": 360}


def result_of(page: Path, tmp_path: Path, *more: str) -> dict[str, Any]:
    """What a script of the page left as its text, between RESULT and END."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", *more,
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    (text,) = re.findall(r"<body>RESULT(.*)END</body>", dom, re.DOTALL)
    out: dict[str, Any] = json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return out


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
    out = result_of(path, tmp_path, *(["--blink-settings=preferredColorScheme=0"] if theme == "dark" else []))

    assert out["Writes"] > 3000  # three charts
    assert all(out[tab] > 20 for tab in ("Overview", "Timeline", "Files", "Partitions", "Schema", "Properties"))
    assert out["up"] == sorted(table.inspect.partitions()["partition_path"].to_pylist())
    assert out["down"] == out["up"][::-1]
    assert out["search"] == ["oslo"]
    assert (out["newest"], out["slices"], out["newest_again"]) == (3, 4, 3)
    assert out["theme"] == ([theme, "light"] if theme == "dark" else [theme, "dark"])
    assert out["images"] == 0
