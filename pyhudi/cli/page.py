"""The page docs/cli.md, generated from the rows of commands: `python -m pyhudi.cli.page > docs/cli.md`."""

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

A run of `pyhudi` calls one method of a table, shows its answer, and ends. It needs no Spark and no Java, unless
`--spark` asks for them. A table is a path or URI; with `--catalog FOLDER` it is a name, and `sales.rides` is the
subfolder sales/rides. With `--catalog thrift://HOST:PORT` a Hive metastore locates `sales.rides`, and with `--spark`
and `--catalog spark_catalog` the session's own catalog does.

**Answers.** Text for people fits the terminal: if a list is too wide, its last columns are left out, and named; a row
of a query then has a line for each column. `--json` writes an object, or an array with a row on each line. Its fields
are those of the result in Python, whose call is named below each command; fields are only ever added. `--csv` writes a
line for each row, with nested values as JSON. Answers go to standard output; everything else (errors, plans, progress,
questions) goes to standard error. A reader that stops early (`| head`) does not change the exit code.

**Files.** `write` reads what `--json`, `--csv` and `export` print: in JSON and CSV decimals, dates and times are text
in ISO form, and binary is hexadecimal digits. In CSV nested values are JSON, an empty field is null and `""` an empty
text; no other word is null. Columns get the types of the table. In a new table all rows of all files decide: columns of
CSV get the narrowest type that keeps every field, so that `00123`, long numbers, and keys like 1.10 remain text; JSON
texts remain texts. A timestamp with a zone fits only a column with zones (TIMESTAMP), one without a zone only
TIMESTAMP_NTZ. Invalid values for a column and duplicate names in an object are refused, and nothing is written.
`--encoding latin-1` reads files that are not UTF-8.

**Changes.** Commands that delete or replace something show their plan and ask, unless there is nothing to do.
`--dry-run` only shows the plan, and `--yes` does not ask. Without a terminal to ask on, a run without `--yes` is
refused. Long work has a line of progress if standard error is a terminal; `PYHUDI_PROGRESS=1` or `0` decides
otherwise. `--option` is refused by commands that have no use for it.

**Completion.** `pyhudi completion bash` prints a script for the shell, as `zsh` and `fish` do:
`eval "$(pyhudi completion bash)"`.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | refused: the table, its state or a value does not allow it; one line on standard error gives the reason |
| 2 | usage: a command or option is unknown, or an argument is missing |
| 3 | findings: the answer of `health`, `validate` or a similar command has findings |
| 4 | conflict with another process; the same run can succeed later |
| 5 | ended by Ctrl-C or SIGTERM after its commit: the line names the instants that are complete; don't run it again |
| 130, 143 | ended by Ctrl-C or SIGTERM before its commit: uncommitted work was undone |

## Options of every command

"""
_OF_MANY = """
## Arguments of several commands

The usage of a command shows which of these it takes.

"""
_MANY = 2  # with this number of commands, an argument is described once, above them


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
    own_arguments = [one for one in command.arguments if _row(one) not in of_many]
    shared = [
        f"`{name}`" for one in command.arguments if one not in own_arguments and not one.is_placed for name in one.names
    ]
    method = command.method if command.method.startswith("pyhudi.") else f"HudiTable.{command.method}"
    sentences = [
        f"`pyhudi {command.usage}`: {command.summary}",
        command.details,
        f"In Python: `{method}`." if command.method else "",
        f"Also: {', '.join(shared)}." if shared else "",
    ]
    lines = wrap(" ".join(filter(None, sentences)), 120, break_long_words=False, break_on_hyphens=False)
    rows = ["\n", *_table(map(_row, own_arguments))] if own_arguments else []
    return "\n".join([f"\n### {command.words}\n", *lines, "".join(rows)])


def _table(rows: Iterable[str]) -> list[str]:
    return ["| argument | meaning |\n|---|---|\n", *(f"{row}\n" for row in rows)]


def _row(argument: CommandArgument) -> str:
    names = ", ".join(f"`{name}`" for name in argument.typed)
    return f"| {names} | {argument.meaning.replace('|', '&#124;')} |"


if __name__ == "__main__":
    print(cli_page(), end="")
