"""The page docs/cli.md, made from the rows of commands: `python -m pyhudi.cli.page > docs/cli.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from textwrap import wrap

from pyhudi.cli.command import Command, CommandArgument
from pyhudi.cli.commands import COMMANDS, GROUPS
from pyhudi.cli.options import COMMON_ARGUMENTS

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
row of a query has a line for each column then. `--json` writes an object, or an array with a row on each line. Its
fields are those of the result in Python, whose call is named below each command; fields are only ever added. `--csv`
writes a line for each row, with nested values as JSON. Answers go to standard output; everything else (errors, plans,
progress, questions) goes to standard error. A reader that has enough (`| head`) changes no exit code.

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
## Arguments of several commands

The line of a command names TABLE and those of the others that it takes.

"""
_MANY = 2  # commands with the same argument: it stands above them, once


def cli_page() -> str:
    """The page as text."""
    counted = Counter(row for command in COMMANDS for row in map(_row, command.arguments))
    of_many = [row for row, count in counted.items() if count >= _MANY]
    parts = [_HEAD, *_table(map(_row, COMMON_ARGUMENTS)), _OF_MANY, *_table(of_many)]
    for group, title in GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [_section(command, of_many) for command in COMMANDS if command.group == group]
    return "".join(parts)


def _section(command: Command, of_many: Collection[str]) -> str:
    """The text on one command."""
    own = [one for one in command.arguments if _row(one) not in of_many]
    shared = [f"`{name}`" for one in command.arguments if one not in own and not one.is_placed for name in one.names]
    method = command.method if command.method.startswith("pyhudi.") else f"HudiTable.{command.method}"
    sentences = [
        f"`pyhudi {command.usage}`: {command.summary}",
        command.details,
        f"In Python: `{method}`." if command.method else "",
        f"Also: {', '.join(shared)}." if shared else "",
    ]
    lines = wrap(" ".join(filter(None, sentences)), 120, break_long_words=False, break_on_hyphens=False)
    rows = ["\n", *_table(map(_row, own))] if own else []
    return "\n".join([f"\n### {command.words}\n", *lines, "".join(rows)])


def _table(rows: Iterable[str]) -> list[str]:
    return ["| argument | meaning |\n|---|---|\n", *(f"{row}\n" for row in rows)]


def _row(argument: CommandArgument) -> str:
    names = ", ".join(f"`{name}`" for name in argument.typed)
    return f"| {names} | {argument.meaning.replace('|', '&#124;')} |"


if __name__ == "__main__":
    print(cli_page(), end="")
