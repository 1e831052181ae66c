"""What is told of mutants: a table of floors, a line for each, and the differences that no test noticed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from mutants.trials import Mutant, Outcome, Trial

# Verdicts of the page on changes that no test can notice, or none should; mutants that have one are counted apart.
LEFT_OUT = ("equivalent", "performance only", "measurement", "second defence")
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
    """Per cent that were noticed, of those that were not judged to be left out; a run that never ends is noticed."""
    return _noticed(_counting(done, verdicts))


def _noticed(trials: Sequence[Trial]) -> float:
    return 100 * sum(trial.outcome is not Outcome.SURVIVED for trial in trials) / max(1, len(trials))


def _counting(done: Sequence[Trial], verdicts: Mapping[tuple[str, str, str], str]) -> list[Trial]:
    return [trial for trial in done if verdicts.get(trial.mutant.name) not in LEFT_OUT]


def table(done: Sequence[Trial], verdicts: Mapping[tuple[str, str, str], str]) -> str:
    """A Markdown table: a row per floor, and one for all; the last column counts judged lines, too."""
    lines = [
        "| floor | lines | judged | noticed | timed out | survived | per cent | with those judged |",
        "|---|---|---|---|---|---|---|---|",
    ]
    floors = sorted({trial.mutant.floor for trial in done})
    for name, chosen in [*((f, [t for t in done if t.mutant.floor == f]) for f in floors), ("all", done)]:
        counting = _counting(chosen, verdicts)
        counts = [sum(t.outcome is outcome for t in counting) for outcome in _COLUMNS]
        shares = [f"{_noticed(some):.0f}" for some in (counting, chosen)]
        lines.append(
            "| " + " | ".join(map(str, [name, len(chosen), len(chosen) - len(counting), *counts, *shares])) + " |"
        )
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
