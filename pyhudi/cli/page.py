"""The page docs/cli.md, made from the registry: `python -m pyhudi.cli.page > docs/cli.md`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from textwrap import wrap

from cyclopts import ArgumentCollection

from pyhudi.cli.json_schema import schema_of
from pyhudi.cli.parsing import arguments_of, details_of, is_common, usage_of
from pyhudi.cli.registry import COMMANDS, GROUPS, Command

__all__ = ["cli_page"]

_HEAD = """# The command line

<!-- Made by `python -m pyhudi.cli.page`; `make docs` writes it. -->

```
pip install "pyhudi[cli]"
pyhudi table describe /lake/rides
pyhudi query "SELECT city, sum(fare) FROM rides GROUP BY city" --catalog /lake --json
```

A run of `pyhudi` calls one method of a table, shows what it answers, and ends. It needs no Spark and no Java, unless
`--spark` asks for them. A table is a path or URI; with `--catalog FOLDER` it is a name, and `sales.rides` is the
subfolder sales/rides. With `--catalog thrift://HOST:PORT` a Hive metastore says where `sales.rides` is, and with
`--spark` and `--catalog spark_catalog` the session's own catalog does.

**Answers.** Text for people fits the terminal: the last columns of a list that is too wide are left out, and named; a
row of a query has a line for each column then. `--json` writes an object, or an array with a row on each line; its
schema is below the first command that answers with it, and fields are only ever added. `--csv` writes a line for each
row, with nested values as JSON. Answers go to standard output; everything else (errors, plans, progress, questions)
goes to standard error. A reader that has enough (`| head`) changes no exit code.

**Files.** `write` reads what `--json`, `--csv` and `export` print: in JSON and CSV decimals, dates and times are text
in ISO form, and binary is hexadecimal digits. In CSV nested values are JSON, an empty field is null and `""` an empty
text; no other word is null. Columns get the types of the table. In a new table all rows of all files decide: columns of
CSV get the narrowest type that keeps every field, so that `00123` and long numbers stay text; texts of JSON stay texts.
A timestamp with a zone goes into a column with zones only (TIMESTAMP), one without into TIMESTAMP_NTZ. A value that is
no value of its column and a name that an object has twice are refused, and nothing is written. `--encoding latin-1`
reads files that are not UTF-8.

**Changes.** Commands that delete or replace something show their plan and ask, unless there is nothing to do.
`--dry-run` shows the plan only, and `--yes` does not ask. Without a terminal to ask on, a run without `--yes` is
refused. Long work has a line of progress where standard error is a terminal; `PYHUDI_PROGRESS=1` or `0` decides
otherwise. `--option` is refused by commands that have no use for it.

**Completion.** `pyhudi completion bash` prints a script for the shell, as `zsh` and `fish` do:
`eval "$(pyhudi completion bash)"`.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | refused: the table, its state or a value does not allow it; one line on standard error says why |
| 2 | usage: a command or option is not known, or an argument is missing |
| 3 | found something wrong: `health`, `validate` and their like answered, and the answer has findings |
| 4 | conflict: another process was in the way; the same run can succeed later |
| 5 | ended by Ctrl-C or SIGTERM after its commit: the line names the instants that are complete; don't run it again |
| 130, 143 | ended by Ctrl-C or SIGTERM before: what was not committed was taken back |

## Options of every command

"""
_OF_MANY = """
## Arguments of many commands

The line of a command names TABLE; commands that delete or replace something name the other two.

"""
_MANY = 10  # commands with the same argument: it stands above them, once


def cli_page() -> str:
    """The page as text."""
    counted = Counter(row for command in COMMANDS for row in _rows(arguments_of(command), common=False))
    of_many = [row for row, count in counted.items() if count > _MANY]
    parts = [_HEAD, *_table(_rows(arguments_of(COMMANDS[0]), common=True)), _OF_MANY, *_table(of_many)]
    answers: dict[str, str] = {}
    for group, title in GROUPS.items():
        commands = [command for command in COMMANDS if command.group == group]
        if commands:
            parts.append(f"\n## {title}\n")
            parts += [_section(command, of_many, answers) for command in commands]
    return "".join(parts)


def _section(command: Command, of_many: Collection[str], answers: dict[str, str]) -> str:
    """The text on one command. `answers`: JSON schema → the first command that has it, of those before."""
    arguments = arguments_of(command)
    lines = [f"\n### {command.words}\n", *wrap(f"`pyhudi {usage_of(command, arguments)}`: {command.summary}", 120), ""]
    details = details_of(command)
    lines += [*wrap(details, 120), ""] if details else []
    own = list(_rows(arguments, common=False))
    if shared := [row.split(" | ")[0].removeprefix("| ") for row in own if row in of_many and row.startswith("| `--")]:
        lines += [f"Also: {', '.join(shared)}.", ""]
    rows = [row for row in own if row not in of_many]
    lines += ["".join(_table(rows))] if rows else []
    schema = json.dumps(schema_of(command), ensure_ascii=False)
    if (first := answers.setdefault(schema, command.words)) != command.words:
        return "\n".join([*lines, f"JSON as of [{first}](#{first.replace(' ', '-')}).\n"])
    lines += ["<details markdown><summary>JSON</summary>", "", "```json", *_folded(schema), "```", "", "</details>"]
    return "\n".join(lines) + "\n"


def _table(rows: Iterable[str]) -> Iterator[str]:
    yield "| argument | meaning |\n|---|---|\n"
    yield from (f"{row}\n" for row in rows)


def _rows(arguments: ArgumentCollection, common: bool) -> Iterator[str]:
    for argument in arguments:
        if argument.show and is_common(argument) is common:
            names = ", ".join(f"`{name}`" for name in argument.names)
            yield f"| {names} | {' '.join((argument.parameter.help or '').split()).replace('|', '&#124;')} |"


def _folded(text: str) -> Iterable[str]:
    return wrap(text, 118, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    print(cli_page(), end="")
