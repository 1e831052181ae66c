"""Runs a target in child processes with limits; a child that dies, or takes too long, is a finding and has a successor.

The child writes each input to memory that both share before it runs it, so that nothing is lost when it is killed. Time
is the child's processor time: a busy machine makes no findings.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.finding import Finding, fault_of, place_in_dump
from fuzz.target import MAX_INPUT_BYTES, Target, input_of

__all__ = ["Outcome", "fuzz", "replay"]

MAX_MEMORY_BYTES = 500 << 20  # above what the process has before its first input
MAX_INPUT_S = 5.0  # of processor time for one input
MAX_STALL_S = 60.0  # of any time: it waits for something that does not come
MAX_INPUTS_OF_A_CHILD = 20_000  # then a fresh one, so that memory that is not given back adds up to nothing
MAX_DEATHS = 50  # of a target's children; the rest of its time is given up

_HEAD, _COUNTS = struct.Struct("<qq"), struct.Struct("<qq")
_SMALLER_ATTEMPTS = 300
_SMALLER_S = 3.0
_DEATHS_TO_REPEAT = 30


@dataclass
class Outcome:
    """What came of a target's inputs."""

    target: str
    inputs: int = 0
    values: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict)


def fuzz(target: Target, seed: int, seconds: float | None, inputs: int | None) -> Outcome:
    """Run a target until its time or its number of inputs is over."""
    outcome = Outcome(target.name)
    seeds = [data for data in target.seeds() if len(data) <= MAX_INPUT_BYTES]
    began = time.monotonic()
    until = None if seconds is None else began + seconds
    first, deaths = 0, 0
    with _Slot() as slot:
        while (
            (inputs is None or first < inputs) and (until is None or time.monotonic() < until) and deaths < MAX_DEATHS
        ):
            last = min(first + MAX_INPUTS_OF_A_CHILD, inputs or 1 << 62)
            known = set(outcome.findings)

            def work(report: Callable[[object], None], first: int = first, last: int = last) -> None:
                _run_inputs(target, seeds, seed, range(first, last), until, slot, known, report)  # noqa: B023

            death = _in_child(work, slot, lambda answer: _take(outcome, answer))
            number, data = slot.read()
            first = number + 1
            if death is not None:
                deaths += 1
                kind, place, detail = death
                found = Finding(target.name, kind, place, detail, seed, number, data)
                if found.key not in outcome.findings:
                    outcome.findings[found.key] = _smaller_death(target, found, slot)
        outcome.values, outcome.refused = slot.counts()
    outcome.inputs, outcome.seconds = first, time.monotonic() - began
    return outcome


def replay(target: Target, data: bytes) -> tuple[str, str, str] | None:
    """Kind, place and detail of what one input does, None when it does nothing wrong."""
    answers: list[object] = []

    def work(report: Callable[[object], None]) -> None:
        report(_fault(target, data))

    with _Slot() as slot:
        slot.write(0, data)
        death = _in_child(work, slot, answers.append)
    if death is not None:
        return death
    found = answers[0] if answers else None
    return (str(found[0]), str(found[1]), str(found[2])) if isinstance(found, list) else None


# In the child


def _run_inputs(
    target: Target, seeds: Sequence[bytes], seed: int, numbers: range, until: float | None, slot: _Slot,
    known: set[tuple[str, str, str]], report: Callable[[object], None],
) -> None:  # fmt: skip
    for number in numbers:
        if until is not None and time.monotonic() > until:
            break
        data = input_of(target, seeds, seed, number)
        slot.write(number, data)
        error = _error_of(target, data)
        slot.count(error is None)
        fault = None if error is None else fault_of(error)
        if fault is None:
            continue
        kind, place, detail = fault
        found = Finding(target.name, kind, place, detail, seed, number, data)
        if found.key not in known:
            known.add(found.key)
            report(found.to_json())
            smaller = _smaller(data, lambda part, same=fault[:2]: _same(_fault(target, part), same))  # type: ignore[misc]
            slot.write(number, data)
            report(Finding(target.name, kind, place, detail, seed, number, smaller).to_json())


def _error_of(target: Target, data: bytes) -> BaseException | None:
    signal.setitimer(signal.ITIMER_PROF, MAX_INPUT_S)
    try:
        target.run(data)
    except BaseException as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _fault(target: Target, data: bytes) -> tuple[str, str, str] | None:
    error = _error_of(target, data)
    return None if error is None else fault_of(error)


def _run_quietly(target: Target, data: bytes) -> None:
    _error_of(target, data)


def _same(found: tuple[str, str, str] | None, wanted: tuple[str, str]) -> bool:
    return found is not None and found[:2] == wanted


def _limit_this_process(dump: int) -> None:
    """From here on: little memory, no core files, and what a dying process says goes to `dump`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = _mapped_bytes()
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + MAX_MEMORY_BYTES, used + MAX_MEMORY_BYTES))
    os.dup2(dump, 2)
    faulthandler.enable(dump, all_threads=False)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.register(signal.SIGPROF, dump, all_threads=False, chain=True)


def _mapped_bytes() -> int:
    """Of this process; 0 where the system does not say (and would not keep the limit either)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return 0
    return pages * resource.getpagesize()


# In the parent


class _Slot:
    """The input at work, in memory that a child shares with its parent."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _HEAD.size + MAX_INPUT_BYTES + _COUNTS.size)

    def write(self, number: int, data: bytes) -> None:
        data = data[:MAX_INPUT_BYTES]
        self._memory[: _HEAD.size] = _HEAD.pack(number, len(data))
        self._memory[_HEAD.size : _HEAD.size + len(data)] = data

    def read(self) -> tuple[int, bytes]:
        number, size = _HEAD.unpack(self._memory[: _HEAD.size])
        return number, self._memory[_HEAD.size : _HEAD.size + size]

    def count(self, is_value: bool) -> None:
        values, refused = self.counts()
        self._memory[-_COUNTS.size :] = _COUNTS.pack(values + is_value, refused + (not is_value))

    def counts(self) -> tuple[int, int]:
        """Inputs that gave a value, and those that gave an error."""
        values, refused = _COUNTS.unpack(self._memory[-_COUNTS.size :])
        return values, refused

    def __enter__(self) -> _Slot:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()


def _in_child(
    work: Callable[[Callable[[object], None]], None], slot: _Slot, hear: Callable[[object], None]
) -> tuple[str, str, str] | None:
    """Do some work in a forked process. Kind, place and detail of its death, None when it ended by itself."""
    with tempfile.TemporaryFile() as dump, tempfile.TemporaryFile("w+") as answers:

        def report(what: object) -> None:
            answers.write(json.dumps(what) + "\n")
            answers.flush()

        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _limit_this_process(dump.fileno())
                work(report)
                status = 0
            finally:
                os._exit(status)
        status, stalled = _wait(pid, slot)
        answers.seek(0)
        for line in answers:
            hear(json.loads(line))
        if status == 0 and not stalled:
            return None
        dump.seek(0)
        text = dump.read().decode("utf-8", "replace")
        return _kind_of_death(status, stalled), place_in_dump(text), ascii(text.strip()[:300])[1:-1]


def _wait(pid: int, slot: _Slot) -> tuple[int, bool]:
    """The exit status of a child, and whether it was killed for standing still."""
    last, since = slot.read()[0], time.monotonic()
    pause_s = 0.001
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status, False
        number = slot.read()[0]
        if number != last:
            last, since = number, time.monotonic()
        if time.monotonic() - since > MAX_STALL_S:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1], True
        time.sleep(pause_s)
        pause_s = min(0.05, pause_s * 1.5)


def _kind_of_death(status: int, stalled: bool) -> str:
    if stalled:
        return f"stands still for {MAX_STALL_S:.0f} s"
    if not os.WIFSIGNALED(status):
        return f"process ended with {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    if number == signal.SIGPROF:
        return f"more than {MAX_INPUT_S:.0f} s"
    return signal.Signals(number).name


def _take(outcome: Outcome, answer: object) -> None:
    if isinstance(answer, dict):
        found = Finding.from_json(answer)
        outcome.findings[found.key] = found


def _smaller_death(target: Target, found: Finding, slot: _Slot) -> Finding:
    """The finding with a shorter input that kills alike; one that hangs stays as it is."""
    if not found.kind.startswith("SIG"):
        return found
    attempts = _DEATHS_TO_REPEAT

    def dies_alike(data: bytes) -> bool:
        nonlocal attempts
        attempts -= 1
        if attempts < 0:
            return False
        slot.write(found.number, data)
        death = _in_child(lambda _: _run_quietly(target, data), slot, lambda _: None)
        return death is not None and death[:2] == (found.kind, found.place)

    smaller = _smaller(found.data, dies_alike)
    slot.write(found.number, found.data)
    return Finding(found.target, found.kind, found.place, found.detail, found.seed, found.number, smaller)


def _smaller(data: bytes, is_same: Callable[[bytes], bool]) -> bytes:
    """A shorter input that does the same: pieces are left out, large ones first."""
    left, until = _SMALLER_ATTEMPTS, time.monotonic() + _SMALLER_S
    size = len(data) // 2
    while size >= 1 and left > 0 and time.monotonic() < until:
        at = 0
        while at < len(data) and left > 0 and time.monotonic() < until:
            left -= 1
            part = data[:at] + data[at + size :]
            with contextlib.suppress(Exception):
                if is_same(part):
                    data = part
                    continue
            at += size
        size //= 2
    return data
