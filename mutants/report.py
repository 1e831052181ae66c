"""What is told of mutants: a table of floors, a line for each, and the differences that no test noticed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from mutants.trials import Mutant, Outcome, Trial

EQUIVALENT = "equivalent"  # a verdict of the page; mutants that have it don't count
_JUDGED = re.compile(
    r"^\| `(?P<path>pyhudi/\S+)` \| `(?P<before>.+?)` → `(?P<after>.+?)` \| (?P<verdict>[^|]+?) \|", re.M
)
_COLUMNS = (Outcome.NOTICED, Outcome.TIMED_OUT, Outcome.SURVIVED)


def judged(page: str) -> Mapping[tuple[str, str, str], str]:
    """What the page says of mutants: (path, line before, line after) → verdict."""
    found = _JUDGED.finditer(page)
    return {
        (one["path"], one["before"].replace(r"\|", "|"), one["after"].replace(r"\|", "|")): one["verdict"]
        for one in found
    }


def share(done: Sequence[Trial], verdicts: Mapping[tuple[str, str, str], str]) -> float:
    """Per cent that were noticed, of those that are not equivalent; a run that never ends is noticed."""
    counting = [trial for trial in done if verdicts.get(trial.mutant.name) != EQUIVALENT]
    return 100 * sum(t.outcome is not Outcome.SURVIVED for t in counting) / max(1, len(counting))


def table(done: Sequence[Trial], verdicts: Mapping[tuple[str, str, str], str]) -> str:
    """A Markdown table: a row per floor, and one for all."""
    lines = [
        "| floor | lines | noticed | timed out | survived | equivalent | per cent |",
        "|---|---|---|---|---|---|---|",
    ]
    floors = sorted({trial.mutant.floor for trial in done})
    for name, chosen in [*((f, [t for t in done if t.mutant.floor == f]) for f in floors), ("all", done)]:
        equivalent = [t for t in chosen if verdicts.get(t.mutant.name) == EQUIVALENT]
        counting = [t for t in chosen if t not in equivalent]
        counts = [sum(t.outcome is outcome for t in counting) for outcome in _COLUMNS]
        cells = [name, len(chosen), *counts, len(equivalent), f"{share(chosen, verdicts):.0f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def line_of(trial: Trial, verdicts: Mapping[tuple[str, str, str], str]) -> str:
    """One line of what became of a mutant."""
    one = trial.mutant
    tests = f"{len(one.tests)} tests" if one.tests else "no test executes it"
    why = trial.noticed_by if trial.outcome is Outcome.NOTICED else verdicts.get(one.name, "not judged")
    return f"{trial.outcome.value}: {one.path}:{one.change.line}, {one.change.kind} ({tests}) {why}"


def difference(one: Mutant) -> str:
    """The changed line as a diff."""
    pair = difflib.unified_diff([one.before], [one.after], one.path, one.path, lineterm="")
    return "\n".join(line for line in pair if not line.startswith("@@"))
