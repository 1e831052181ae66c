"""`python -m mutants`: breaks lines and tells which of them no test noticed. docs/contributing/mutants.md"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from mutants import ROOT, coverage_map, trials
from mutants.coverage_map import FOLDER
from mutants.reach import FLOORS
from mutants.report import difference, judged, line_of, share, table
from mutants.sample import draw, mutant
from mutants.trials import Outcome, Trial

PAGE = ROOT / "docs" / "contributing" / "mutants.md"


def main() -> int:
    """Exit code: 0 when as many were noticed as `--at-least` says."""
    given = arguments()
    if given.fresh:
        coverage_map.forget()
    known = coverage_map.load(given.processes, cases=given.cases, unfinished=given.unfinished)
    verdicts = judged(PAGE.read_text() if PAGE.exists() else "")
    drawn = draw(given.only or FLOORS, given.count, given.seed)
    mutants = [mutant(*one, known, given.tests, given.seconds) for one in drawn]
    results = FOLDER / f"results-{given.seed}.json"
    before = json.loads(results.read_text()) if results.exists() else {}
    done: list[Trial] = []
    if given.again:
        known_as = {one: before.get("\n".join(one.name), Outcome.SURVIVED.value) for one in mutants}
        done = [Trial(one, Outcome(found)) for one, found in known_as.items() if found != Outcome.SURVIVED.value]
        mutants = [one for one, found in known_as.items() if found == Outcome.SURVIVED.value]
    started_s = time.monotonic()
    for trial in trials.run_all(mutants, given.processes) if mutants else ():
        done.append(trial)
        before["\n".join(trial.mutant.name)] = trial.outcome.value
        results.write_text(json.dumps(before, indent=1))
        print(line_of(trial, verdicts), file=sys.stderr, flush=True)
    for test in trials.failing(sorted({trial.noticed_by for trial in done if trial.noticed_by})) if done else ():
        print(f"doubtful: this test fails with no line broken, too: {test}", file=sys.stderr)
    print(table(done, verdicts))
    print(f"\nseed {given.seed}, {len(done)} lines, {time.monotonic() - started_s:,.0f} s")
    for trial in done:
        if trial.outcome is not Outcome.NOTICED:
            print(f"\n{difference(trial.mutant)}\n{line_of(trial, verdicts)}")
    return 0 if share(done, verdicts) >= given.at_least else 1


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="says which lines (default %(default)s)")
    parser.add_argument("--count", type=int, default=70, help="lines to break, over all floors (default %(default)s)")
    parser.add_argument("--only", action="append", choices=FLOORS, help="a floor; may be given several times")
    parser.add_argument("--tests", type=int, default=150, help="most tests for a line (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="their time at most (default %(default)s)")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 2), help="lines at a time")
    parser.add_argument("--at-least", type=float, default=90, help="per cent to notice (default %(default)s)")
    parser.add_argument(
        "--again", action="store_true", help="only those that the last run of this seed did not notice, or not come to"
    )
    parser.add_argument("--cases", type=int, default=0, help="most of a test function to record (default all)")
    parser.add_argument("--unfinished", action="store_true", help="the map as far as it is, nothing is recorded")
    parser.add_argument("--fresh", action="store_true", help="record anew which lines the tests execute")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
