"""`make simulate`: play by random seeds until the time is up, each failure shrunk and told.

    python -m tests.support.simulation --seconds 3600 --seed 1 --width 3 --only rollback,upsert --version 9

`--seed 7 --plays 1` plays one again: the seed says everything.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.support.simulation.actions import ACTIONS
from tests.support.simulation.play import Fault, by_seed, run, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--plays", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--width", type=int, choices=(2, 3), help="actions side by side; else both")
    parser.add_argument("--only", default="", help=f"actions of which one takes part: {', '.join(ACTIONS)}")
    parser.add_argument("--version", type=int, choices=(6, 8, 9))
    parser.add_argument("--faults", type=int, default=20, help="end after so many")
    asked = parser.parse_args()
    only = frozenset(filter(None, asked.only.split(",")))
    began_s, seed, played, points, faults = time.monotonic(), asked.seed, 0, 0, 0
    while played < asked.plays and time.monotonic() - began_s < asked.seconds and faults < asked.faults:
        play = by_seed(seed)
        seed += 1
        if (asked.width and len(play.actions) != asked.width) or (asked.version and play.version != asked.version):
            continue
        if only and only.isdisjoint(play.actions):
            continue
        played += 1
        try:
            points += run(play).points
        except Fault:
            faults += 1
            print(f"FAULT {faults}: {shrunk(play)[1]}\n", flush=True)
    print(f"{played:,} schedules with {points:,} points in {time.monotonic() - began_s:.0f} s: {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
