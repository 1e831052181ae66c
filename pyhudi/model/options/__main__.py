"""The page docs/options.md, made from the option table; `python -m pyhudi.model.options` prints it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from pyhudi.model.options.catalogue import ARGUMENTS, OPTIONS
from pyhudi.model.options.not_honoured import options_not_honoured
from pyhudi.model.options.spec import OptionSpec, Support

__all__ = ["options_page"]

_LINE = 120
_HEAD = """# Options

Most tables need a few of these. Options are Hudi's keys everywhere; in Python some are arguments of calls, too:

"""
# What most users set, in the order in which they meet it, by its name: why, and what to give.
_FIRST = {
    "record_key": "The columns that identify a row: an upsert replaces the row with its key.",
    "partition_by": "The columns whose values make the folders, such as a day or a region.",
    "ordering": "The column that says which of two rows is newer, such as `updated_at`.",
    "table_type": "`MERGE_ON_READ` for small and frequent changes; reads merge them.",
    "operation": "`insert` or `bulk_insert` for new keys, `delete` for keys to delete.",
    "duplicates": "`drop` or `fail` for inserts of keys that the table may have.",
    "schema_mode": "`strict` refuses new columns, `overwrite` takes the columns of the data.",
    "index": "`GLOBAL_RECORD_LEVEL_INDEX` or `BUCKET` for upserts into many files.",
    "commits_retained": "How many commits time travel goes back.",
    "max_file_size_bytes": "The size of full files.",
    "conflict_retries": "How often a write that lost against another one runs again; 20 without a concurrency mode.",
    "lock": "The lock of many writers, where the default for the store doesn't do.",
}
_RULES = """
## Rules

Options are Hudi's own keys. Older spellings work and mean the same; giving two spellings that disagree is an error.
What the call gives wins over what the session gives (`spark.hoodie.…`, for every table), and that over the defaults.
What a table *is* (keys, partitioning, type, version, formats, merge mode) is stored in the table: an option of the call
that says otherwise is an error, a session-wide one is passed over. Options of your own key generator go under
`hoodie.keygen.user.`.

An unknown key is an error in a call of Python (`options=`), and a warning where Spark or a session gives it
(`df.write.options`, `SET`, `spark.hoodie.…`). Both name the nearest known key.

In Python the options that nearly every table needs are arguments: `write_hudi(path, data, record_key="id",
partition_by="day")`, `table.clean(commits_retained=5)`. All others are in `options`: `table.upsert(rows,
options={"hoodie.parquet.compression.codec": "zstd"})`. A wrong name is an error that says the right one.
"""
_REST = """
## Known, without effect

These change speed or housekeeping in Apache Hudi, never what a table holds. A warning names each that is given, except
where the value (in brackets) says what PyHudi does anyway.
"""
_REFUSED = """
## Known, refused

These would change what a table holds or promises, and this release does not do it. Giving one is an error before
anything is written, except where the value (in brackets) says what PyHudi does anyway.
"""


def options_page() -> str:
    """The whole page in Markdown, with a line feed at the end."""
    parts = [_HEAD, *_first_table(OPTIONS), _RULES]
    for group in dict.fromkeys(spec.group for spec in OPTIONS):
        parts.append(_honoured_table(group, [spec for spec in OPTIONS if spec.group == group]))
    parts += [_REST, *_rest(Support.NO_EFFECT), _REFUSED, *_rest(Support.REFUSED)]
    return "".join(parts)


def _first_table(honoured: Iterable[OptionSpec]) -> Iterable[str]:
    by_name = {spec.keyword: spec for spec in honoured}
    yield "| Hudi's key | in Python | default | what it is for |\n|---|---|---|---|\n"
    for name, text in _FIRST.items():
        spec = by_name[name]
        argument = f"`{name}`" if name in ARGUMENTS else ""
        yield f"| [`{spec.key}`](#{_anchor(spec.group)}) | {argument} | {_default(spec)} | {_cell(text)} |\n"


def _anchor(heading: str) -> str:
    """The part of an address that leads to a heading."""
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


def _rest(support: Support) -> Iterable[str]:
    specs = [spec for spec in options_not_honoured() if spec.support is support]
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
    print(options_page(), end="")
