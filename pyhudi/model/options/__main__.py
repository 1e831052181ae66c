"""The pages docs/options.md and docs/streamer-options.md, made from the option table.

`python -m pyhudi.model.options` prints the first, `python -m pyhudi.model.options streamer` the second.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence

from pyhudi.model.options.known_keys import ARGUMENTS, OPTIONS
from pyhudi.model.options.not_honoured import options_not_honoured
from pyhudi.model.options.spec import OptionSpec, Support

__all__ = ["options_page", "streamer_options_page"]

_LINE = 120
_HEAD = """# Options

Most tables need a few of these. Options are Hudi's keys everywhere; in Python some are arguments of calls, too:

"""
_STREAMER_HEAD = """# Options of pipelines

These are the keys of a configuration of the [Streamer](streamer.md). It takes the [options of writes](options.md), too.
"""
# The options that most users set, by name, in the order in which they need them: the purpose of each.
_FIRST = {
    "record_key": "The columns that identify a row: an upsert replaces the row with its key.",
    "partition_by": "The columns whose values make the folders, such as a day or a region.",
    "ordering": "The column that tells which of two rows is newer, such as `updated_at`.",
    "table_type": "`MERGE_ON_READ` for small and frequent changes, which reads then merge.",
    "operation": "`insert` or `bulk_insert` for new keys, `delete` for keys to delete.",
    "duplicates": "`drop` or `fail` for inserts of keys that the table may already have.",
    "schema_mode": "`strict` refuses new columns, `overwrite` replaces the columns by those of the data.",
    "index": "`GLOBAL_RECORD_LEVEL_INDEX` or `BUCKET` for upserts into many files.",
    "commits_retained": "The number of commits that time travel can go back.",
    "max_file_size_bytes": "The size at which a file is full.",
    "conflict_retries": "How often a write that lost a conflict is retried; 20 without a concurrency mode.",
    "lock": "The lock of many writers, if the default for the store isn't suitable.",
}
_RULES = """
## Rules

Options are Hudi's own keys. Older spellings work and mean the same; two spellings with different values are an error.
An option of the call wins over one of the session (`spark.hoodie.…`, for every table), which wins over the default. The
properties of a table (keys, partitioning, type, version, formats, merge mode) are stored in the table: a different
option of the call is an error, a different session-wide option is ignored. Options of your own key generator begin with
`hoodie.keygen.user.`. The keys of pipelines have [a page of their own](streamer-options.md).

An unknown key is an error in a Python call (`options=`), and a warning if it comes from Spark or a session
(`df.write.options`, `SET`, `spark.hoodie.…`). Both name the nearest known key.

In Python the options that nearly every table needs are arguments: `write_hudi(path, data, record_key="id",
partition_by="day")`, `table.clean(commits_retained=5)`. All others go into `options`: `table.upsert(rows,
options={"hoodie.parquet.compression.codec": "zstd"})`. The error for a wrong name says the right one.
"""
_WITHOUT_EFFECT = """
## Known, without effect

These change speed or housekeeping in Apache Hudi, never the contents of a table. Setting one causes a warning, unless
the value (in brackets) is what PyHudi does anyway.
"""
_REFUSED = """
## Known, refused

These would change the contents or guarantees of a table in ways that this release does not support. Setting one is an
error before anything is written, unless the value (in brackets) is what PyHudi does anyway.
"""


def options_page() -> str:
    """The page of all options but the Streamer's, in Markdown, with a line feed at the end."""
    return "".join([_HEAD, *_first_table(OPTIONS), _RULES, *_sections(is_streamer=False)])


def streamer_options_page() -> str:
    """The page of the Streamer's options."""
    return "".join([_STREAMER_HEAD, *_sections(is_streamer=True)])


def _sections(*, is_streamer: bool) -> Iterable[str]:
    honoured = [spec for spec in OPTIONS if _is_streamer(spec) == is_streamer]
    for group in dict.fromkeys(spec.group for spec in honoured):
        yield _honoured_table(group, [spec for spec in honoured if spec.group == group])
    others = [spec for spec in options_not_honoured() if _is_streamer(spec) == is_streamer]
    for head, support in ((_WITHOUT_EFFECT, Support.NO_EFFECT), (_REFUSED, Support.REFUSED)):
        yield head
        yield from _by_group([spec for spec in others if spec.support is support])


def _is_streamer(spec: OptionSpec) -> bool:
    return spec.group.startswith("Streamer")


def _first_table(honoured: Iterable[OptionSpec]) -> Iterable[str]:
    by_name = {spec.keyword: spec for spec in honoured}
    yield "| Hudi's key | in Python | default | what it is for |\n|---|---|---|---|\n"
    for name, text in _FIRST.items():
        spec = by_name[name]
        argument = f"`{name}`" if name in ARGUMENTS else ""
        yield f"| [`{spec.key}`](#{_anchor(spec.group)}) | {argument} | {_default(spec)} | {_cell(text)} |\n"


def _anchor(heading: str) -> str:
    """The anchor of a heading in a link."""
    return heading.lower().replace("'", "").replace(" ", "-")


def _honoured_table(group: str, specs: Iterable[OptionSpec]) -> str:
    lines = [f"\n## {group}\n\n| option | default | what it does |\n|---|---|---|\n"]
    for spec in specs:
        other = [f"in Python `{spec.keyword}`"] if spec.keyword in ARGUMENTS else []
        other += [f"also `{alias}`" for alias in spec.aliases]
        values = f" Values: {', '.join(f'`{choice}`' for choice in spec.choices)}." if spec.choices else ""
        later = f" Not yet: {', '.join(f'`{choice}`' for choice in spec.later)}." if spec.later else ""
        notes = f" ({'; '.join(other)})" if other else ""
        lines.append(f"| `{spec.key}`{notes} | {_default(spec)} | {_cell(spec.doc + values + later)} |\n")
    return "".join(lines)


def _by_group(specs: Sequence[OptionSpec]) -> Iterable[str]:
    for group in dict.fromkeys(spec.group for spec in specs):
        of_group = [spec for spec in specs if spec.group == group]
        keys = ", ".join(_key_with_accepted(spec) for spec in of_group)
        text = f"**{group}.** {of_group[0].doc} {keys}"
        yield f"\n{textwrap.fill(text, _LINE, break_long_words=False, break_on_hyphens=False)}\n"


def _key_with_accepted(spec: OptionSpec) -> str:
    accepted = " or ".join(sorted(value for value in spec.accepted if value))
    return f"`{spec.key}` ({accepted})" if accepted else f"`{spec.key}`"


def _default(spec: OptionSpec) -> str:
    return f"`{spec.default}`" if spec.default else "none"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(streamer_options_page() if sys.argv[1:] == ["streamer"] else options_page(), end="")
