"""`python -m fuzz`: runs the targets one after the other and prints what came of them; exit code 1 for findings."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from fuzz.finding import Finding
from fuzz.run import Outcome, fuzz, replay
from fuzz.target import Target
from fuzz.targets import TARGETS

DEFAULT_REPORT = Path(__file__).resolve().parent / "findings.json"


def main() -> int:
    given = arguments()
    warnings.simplefilter("ignore")
    if given.list:
        print("\n".join(TARGETS))
        return 0
    if given.replay:
        return run_again(Path(given.replay))
    seconds = None if given.inputs else given.seconds
    print(f"seed {given.seed}, {f'{seconds:g} seconds' if seconds else f'{given.inputs} inputs'} for each target")
    print(f"{'target':<20} {'inputs':>8} {'values':>8} {'refused':>8} {'findings':>8} {'per s':>8}")
    findings: list[Finding] = []
    for target in chosen(given.only):
        outcome = fuzz(target, given.seed, seconds, given.inputs or None)
        findings += outcome.findings.values()
        print(line_of(outcome), flush=True)
    report = Path(given.report)
    if findings:
        report.write_text(json.dumps([found.to_json() for found in findings], indent=1))
        print("", *findings, f"{len(findings)} findings; inputs in {report}", sep="\n")
    return 1 if findings else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target (default 10)")
    parser.add_argument("--inputs", type=int, default=0, help="for each target, instead of seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of targets, with commas")
    parser.add_argument("--list", action="store_true", help="print the names of all targets")
    parser.add_argument("--report", default=str(DEFAULT_REPORT), help="where inputs of findings are written")
    parser.add_argument("--replay", help="a report whose inputs are run again")
    return parser.parse_args()


def chosen(only: str) -> list[Target]:
    names = [name for name in only.split(",") if name] or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        sys.exit(f"unknown targets {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    return [TARGETS[name] for name in names]


def line_of(outcome: Outcome) -> str:
    rate = outcome.inputs / max(outcome.seconds, 1e-3)
    numbers = (outcome.inputs, outcome.values, outcome.refused, len(outcome.findings), round(rate))
    return f"{outcome.target:<20} " + " ".join(f"{number:>8}" for number in numbers)


def run_again(report: Path) -> int:
    """Each input of a report: mended, or what it does now."""
    left = 0
    for found in (Finding.from_json(fields) for fields in json.loads(report.read_text())):
        fault = replay(TARGETS[found.target], found.data)
        left += fault is not None
        print(
            f"{found.target} {found.number}: {'mended' if fault is None else f'{fault[0]} at {fault[1]}: {fault[2]}'}"
        )
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
