"""The page docs/options.md, made from the option table; `python -m pyhudi.model.options` prints it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from pyhudi.model.options.catalogue import OPTIONS
from pyhudi.model.options.spec import OptionSpec, Support

__all__ = ["options_page"]

_LINE = 120
_HEAD = """# Options

Printed from the option table in `pyhudi/model/options` by `make docs`; change it there.

Options are Hudi's own keys. Older spellings work and mean the same; giving two spellings that disagree is an error.
What the call gives wins over what the session gives (`spark.hoodie.…`, for every table), and that over the defaults.
What a table *is* (keys, partitioning, type, version, formats, merge mode) is stored in the table: an option of the call
that says otherwise is an error, a session-wide one is passed over. Options of your own key generator go under
`hoodie.keygen.user.`.

An unknown key is an error in a call of Python (`options=`), and a warning where Spark or a session gives it
(`df.write.options`, `SET`, `spark.hoodie.…`). Both name the nearest known key.

In Python the common options are arguments of the calls that they matter to: `write_hudi(path, data, record_key="id",
partition_by="day")`, `table.clean(commits_retained=5)`. `help(table.clean)` lists them; type checkers and editors know
their names and types, and a wrong name is told the right one.
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
    honoured = [spec for spec in OPTIONS if spec.support is Support.HONOURED]
    parts = [_HEAD]
    for group in dict.fromkeys(spec.group for spec in honoured):
        parts.append(_honoured_table(group, [spec for spec in honoured if spec.group == group]))
    parts += [_REST, *_rest(Support.NO_EFFECT), _REFUSED, *_rest(Support.REFUSED)]
    return "".join(parts)


def _honoured_table(group: str, specs: Iterable[OptionSpec]) -> str:
    lines = [f"\n## {group}\n\n| option | default | what it does |\n|---|---|---|\n"]
    for spec in specs:
        other = [f"in Python `{spec.keyword}`"] if spec.keyword else []
        other += [f"also `{alias}`" for alias in spec.aliases]
        values = f" Values: {', '.join(f'`{choice}`' for choice in spec.choices)}." if spec.choices else ""
        later = f" Not yet: {', '.join(f'`{choice}`' for choice in spec.later)}." if spec.later else ""
        notes = f" ({'; '.join(other)})" if other else ""
        lines.append(f"| `{spec.key}`{notes} | {_default(spec)} | {_cell(spec.doc + values + later)} |\n")
    return "".join(lines)


def _rest(support: Support) -> Iterable[str]:
    specs = [spec for spec in OPTIONS if spec.support is support]
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
