"""`python -m bench.lock_bench`: how long a lock is free between two processes that want it.

Two processes take and release the lock of one table in turn, as fast as they can get it. A hand-over lasts from the
release of one to the acquisition of the other; both write the times of a clock that all processes of a machine share.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time

from pyhudi.locks import LockOptions, open_lock
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import LocalStorage

HOLDS_S = 0.02


def take_turns(folder: str, provider: str, turns: int) -> list[tuple[float, float]]:
    """When this process got the lock, and when it began to give it back."""
    lock = open_lock(LockOptions(provider), LocalStorage(folder), SystemClock())
    times = []
    for _ in range(turns):
        assert lock.try_acquire(60)
        got = time.monotonic()
        time.sleep(HOLDS_S)
        left = time.monotonic()
        lock.release()
        times.append((got, left))
        time.sleep(HOLDS_S / 2)  # the other one waits by now
    return times


def hand_overs_ms(provider: str, turns: int) -> list[float]:
    """Times from a release in one process to the acquisition in the other."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.lock_bench", "--player", folder, "--provider", provider]
        players = [
            subprocess.Popen([*command, "--turns", str(turns)], stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        answers = [json.loads(player.communicate()[0]) for player in players]
    holds = sorted((got, left, who) for who, times in enumerate(answers) for got, left in times)
    changes = [(a, b) for a, b in itertools.pairwise(holds) if a[2] != b[2]]
    return [(b[0] - a[1]) * 1000 for a, b in changes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--provider", default="")
    parser.add_argument("--player", default="")
    given = parser.parse_args()
    if given.player:
        print(json.dumps(take_turns(given.player, given.provider, given.turns)))
        return
    print("| provider | hand-overs | median, ms | 95 %, ms | longest, ms |\n|---|---|---|---|---|")
    for provider in [given.provider] if given.provider else ["FILESYSTEM", "STORAGE"]:
        times = sorted(hand_overs_ms(provider, given.turns))
        high = times[int(len(times) * 0.95)]
        print(f"| {provider} | {len(times)} | {statistics.median(times):.1f} | {high:.1f} | {times[-1]:.1f} |")


if __name__ == "__main__":
    main()
