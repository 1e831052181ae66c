"""The page docs/procedures.md: `python -m pyhudi.sql.procedures.page > docs/procedures.md`."""

from __future__ import annotations

from textwrap import wrap

from pyhudi.sql.procedures.procedure import Argument, Procedure
from pyhudi.sql.procedures.registry import PROCEDURES, REFUSED

__all__ = ["procedures_page"]

_HEAD = """# Procedures

<!-- Made by `python -m pyhudi.sql.procedures.page`. -->

`CALL` runs Hudi's procedures, in `spark.sql` after `pyhudi.enable(spark)` and in a session without Spark:

```sql
CALL show_commits(table => 'rides', limit => 5);
CALL run_compaction(op => 'run', table => 'rides');
CALL show_timeline(path => '/lake/rides', filter => "action = 'clean'");
```

From Python the same is a function, which returns an Arrow table:

```python
len(pyhudi.call("show_commits", "/lake/rides", limit=5))  # → 2
```

Names, arguments (by place or by name) and columns are those of Apache Hudi 1.2.0. `table` is a name, or a path. `limit`
takes the first rows, all of them when it is below zero; `filter` is a condition on the columns and chooses among those
rows. `options` is a text of Hudi's keys, `k=v,k=v`; what is `SET` in the session comes with every call that writes.

Where real Hudi fails or is wrong, the answer here differs: delete blocks are shown in log files, slices behind a
pending compaction show all of their log files, archived commits are all shown when no range is given, folders of one
level count in `repair_add_partition_meta`, and no average is given for a commit without rows.

"""


def procedures_page() -> str:
    """The page as text."""
    procedures = sorted(PROCEDURES.values(), key=lambda one: one.name)
    parts = [_HEAD, *(_section(procedure) for procedure in procedures), "## Refused\n\n", _lines(_REFUSED), "\n\n"]
    parts += [_item(f"- `{name}`: {reason}.") + "\n" for name, reason in sorted(REFUSED.items())]
    return "".join(parts)


_REFUSED = "These of Hudi's have no counterpart here; the call says why."


def _section(procedure: Procedure) -> str:
    arguments = ", ".join(map(_argument, procedure.arguments)) or "none"
    columns = ", ".join(f"`{field.name}`" for field in procedure.columns)
    items = _item(f"- arguments: {arguments}") + "\n" + _item(f"- columns: {columns}")
    return f"## {procedure.name}\n\n{_lines(procedure.about)}\n\n{items}\n\n"


def _argument(argument: Argument) -> str:
    if argument.required:
        return f"`{argument.name}` (required)"
    default = f" = `{argument.default_text}`" if argument.default_text else ""
    return f"`{argument.name}`{default}"


def _lines(text: str) -> str:
    return "\n".join(wrap(text, 118, break_long_words=False))


def _item(text: str) -> str:
    return "\n".join(wrap(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


if __name__ == "__main__":
    print(procedures_page(), end="")
