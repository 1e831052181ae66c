"""The storage-based lock with real Hudi: it excludes both, passes between both, and guards both one's writes.

Real Hudi's, unchanged: StorageBasedLockProvider with its file, owners, renewal, expiry and states, and all of Spark's
writes. Ours, not Hudi's: the class behind it that gets and conditionally puts the lock file (S3StorageLockClient.java
in java/ stands in for the one of hudi-aws, which the Spark bundle lacks), and moto's server instead of S3. So what
stays unproven is how Amazon's client and Amazon's store behave: their time-outs, retries and throttling.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyhudi.locks import LockOptions, LockProvider, hold, open_lock
from pyhudi.locks.audit import AUDIT_FOLDER, set_audit, validate_audit
from pyhudi.locks.storage_based import LOCK_PATH
from pyhudi.model.options.concurrency import StorageLockOptions
from pyhudi.storage import Storage, SystemClock, open_storage
from pyhudi.table import HudiTable
from tests.support.golden.rows import differences
from tests.support.judge.comparing import as_json, assert_same
from tests.support.judge.hudi_on_s3 import Holder, HudiOnS3, classes_of_the_lock
from tests.support.judge.real_hudi import Judge
from tests.support.judge.stories import DDL, KEYS, MERGE_ON_READ, SCHEMA, Step, Story, rows
from tests.support.judge.two_writers import MANY, Play, overtake_each_other

pytest.importorskip("moto.server")
pytest.importorskip("obstore")

from tests.support.servers.s3_server import make_bucket, options_of, s3_server

pytestmark = pytest.mark.slow
UNDER_THE_STORAGE_LOCK = {
    **MANY,
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
}
# For PyHudi only, so that it is the quicker one when it is to overtake; all clocks here are one.
SHORT_WAITS = {"hoodie.time.generator.max_expected_clock_skew_ms": "1"}
APPENDS = 50
VALIDITY_S, RENEWAL_S = 10, 1  # the shortest that Hudi allows
_PAUSE_S = 0.03
_DRIFT_S = 0.5
_SLACK_S = 2.5  # a lot runs on this machine


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with s3_server() as port:
        make_bucket(port, "lake")
        yield port


@pytest.fixture(scope="module")
def classes(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> str:
    return classes_of_the_lock(tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="module")
def hudi_on_s3(classes: str, port: int) -> Iterator[HudiOnS3]:
    hudi = HudiOnS3(classes, port)
    yield hudi
    hudi.close()


def open_ours(storage: Storage) -> LockProvider:
    options = LockOptions("STORAGE", retry_wait_ms=3, storage=StorageLockOptions(VALIDITY_S, RENEWAL_S))
    return open_lock(options, storage, SystemClock())


def test_what_both_append_to_one_file_under_the_lock_is_all_there(classes: str, port: int) -> None:
    """Appending is getting and putting, without a condition: two at once would lose a letter."""
    table = open_storage("s3a://lake/counted", options_of(port))
    theirs = Holder.hudi(classes, port, table.root, f"{table.root}/letters", VALIDITY_S, RENEWAL_S)
    try:
        assert theirs.ask("1") == "done", "a JVM is slow at first"
        theirs.say(str(APPENDS - 1))
        ours = open_ours(table)
        for _ in range(APPENDS):
            with hold(ours, 60):
                table.write("letters", table.read("letters") + b"p")
            time.sleep(random.random() * _PAUSE_S)  # who goes on at once has the lock at once
        assert theirs.hear() == "done"
    finally:
        theirs.kill()

    letters = table.read("letters").decode()
    handed_over = sum(before != after for before, after in itertools.pairwise(letters))
    print(f"handed over {handed_over} times: {letters}")
    assert (letters.count("h"), letters.count("p"), len(letters)) == (APPENDS, APPENDS, 2 * APPENDS)
    assert handed_over > APPENDS / 5, "the two hardly met: little is proven"


def test_both_leave_journals_that_show_that_they_took_turns(classes: str, port: int) -> None:
    table = open_storage("s3a://lake/audited", options_of(port))
    set_audit(table, True)
    theirs = Holder.hudi(classes, port, table.root, "", VALIDITY_S, RENEWAL_S)
    try:
        for _ in range(3):
            assert theirs.ask("take") == "true"
            assert theirs.ask("release") == "released"
            with hold(open_ours(table), 60):
                time.sleep(_PAUSE_S)
        assert theirs.ask("take") == "true"
        time.sleep(2 * RENEWAL_S)
        assert theirs.ask("release") == "released"
    finally:
        theirs.kill()

    texts = [table.read(entry.path).decode() for entry in table.list(AUDIT_FOLDER)]
    journals = [[json.loads(line) for line in text.splitlines()] for text in texts]
    assert len({frozenset(line) for journal in journals for line in journal}) == 1, "one form of line"
    states = sorted("".join(line["state"][0] for line in journal) for journal in journals)
    assert states[:3] == ["SE"] * 3, "ours, a file for each time"
    assert states[3].startswith("SESESESR"), "Hudi's, a file for all"
    validation = validate_audit(table, SystemClock())
    assert (validation.files, validation.issues) == (4, ())


OURS = """
import sys, warnings
from pyhudi.locks import LockOptions, open_lock
from pyhudi.model.options.concurrency import StorageLockOptions
from pyhudi.storage import SystemClock, open_storage
storage = open_storage(sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[4:]))
options = LockOptions("STORAGE", storage=StorageLockOptions(int(sys.argv[2]), int(sys.argv[3])))
lock = open_lock(options, storage, SystemClock())
print("ready", flush=True)
for word in map(str.strip, sys.stdin):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if word == "lost":
            print(not lock.is_held, flush=True)
        elif word == "release":
            lock.release()
            print("; ".join(str(one.message) for one in told) or "released", flush=True)
        else:
            print(lock.try_acquire(0 if word == "try" else 60), flush=True)
"""


def test_a_lock_whose_holder_hangs_passes_to_the_other_and_the_holder_does_not_take_it_back(
    classes: str, port: int
) -> None:
    """Each holds a table that the other wants. Both renew; then both are stopped in the middle, and later go on."""
    held_by_hudi, held_by_us = (open_storage(f"s3a://lake/{name}", options_of(port)) for name in ("hudis", "ours"))
    settings = [str(VALIDITY_S), str(RENEWAL_S), *(f"{key}={value}" for key, value in options_of(port).items())]
    hanging_hudi = Holder.hudi(classes, port, held_by_hudi.root, "", VALIDITY_S, RENEWAL_S)
    hanging_ours = Holder([sys.executable, "-c", OURS, held_by_us.root, *settings])
    hudi = Holder.hudi(classes, port, held_by_us.root, "", VALIDITY_S, RENEWAL_S)
    ours = open_ours(held_by_hudi)
    hanging = (hanging_hudi, hanging_ours)
    try:
        assert [holder.ask("take") for holder in hanging] == ["true", "true"]
        renewed_until_s = time.monotonic() + VALIDITY_S + 2
        while time.monotonic() < renewed_until_s:
            assert not ours.try_acquire(0), "a lock that Hudi renews is Hudi's"
            assert hudi.ask("try") == "false", "a lock that PyHudi renews is PyHudi's"
            time.sleep(0.3)

        for holder in hanging:
            holder.process.send_signal(signal.SIGSTOP)
        waited = seconds_until_taken(ours, hudi)
        print("taken over after, in seconds:", waited)
        for name, seconds in waited.items():
            earliest_s = VALIDITY_S + _DRIFT_S - RENEWAL_S - 0.5
            assert earliest_s < seconds < VALIDITY_S + _DRIFT_S + _SLACK_S, f"{name} took over after {seconds} s"

        for holder in hanging:
            holder.process.send_signal(signal.SIGCONT)
        assert hanging_ours.ask("lost") == "true"
        time.sleep(2 * RENEWAL_S)  # a renewal must not bring the lock back
        assert [holder.ask("lost") for holder in hanging] == ["true", "true"]
        taken = [lease_in(table) for table in (held_by_hudi, held_by_us)]
        assert "was taken over" in hanging_ours.ask("release")
        assert "failed_to_release" in hanging_hudi.ask("release")
        assert [holder.ask("try") for holder in hanging] == ["false", "false"]
        assert ours.is_held
        assert [lease_in(table) for table in (held_by_hudi, held_by_us)] == taken

        ours.release()
        assert hudi.ask("release") == "released"
        assert [holder.ask("try") for holder in hanging] == ["true", "true"]
    finally:
        for holder in (*hanging, hudi):
            holder.kill()


def lease_in(table: Storage) -> tuple[str, bool]:
    """Whose the lock file says the lock is, and whether it was given back."""
    fields = json.loads(table.read(LOCK_PATH))
    return fields["owner"], fields["expired"]


def seconds_until_taken(ours: LockProvider, hudi: Holder) -> dict[str, float]:
    """Both try again and again; who got its lock after how long."""
    begin_s, waited = time.monotonic(), dict[str, float]()
    while len(waited) < 2:
        now_s = time.monotonic() - begin_s
        assert now_s < 3 * VALIDITY_S, f"taken over: {waited}"
        if "PyHudi" not in waited and ours.try_acquire(0):
            waited["PyHudi"] = now_s
        if "Hudi" not in waited and hudi.ask("try") == "true":
            waited["Hudi"] = now_s
        time.sleep(0.1)
    return waited


@dataclass
class PlayOnS3(Play):
    """The play of two writers with its table on a server."""

    hudi_on_s3: HudiOnS3 | None = None
    port: int = 0

    @property
    def path(self) -> str:
        return f"s3a://lake/{self.story.name}"

    @property
    def storage(self) -> Storage:
        return open_storage(self.path, options_of(self.port))

    def write_theirs(self, step: Step) -> None:
        self.steps.append(step)
        assert self.hudi_on_s3 is not None
        options = {key: value for key, value in self.story.write_options().items() if key not in SHORT_WAITS}
        self.hudi_on_s3.upsert(self.path, as_json(step.rows), DDL, options)


@pytest.mark.parametrize("kind", [pytest.param({}, id="v9"), pytest.param(MERGE_ON_READ, id="v9_logs")])
def test_two_writers_under_the_storage_lock_lose_nothing(
    kind: Mapping[str, str], judge: Judge, hudi_on_s3: HudiOnS3, port: int, request: pytest.FixtureRequest
) -> None:
    name = f"shared_{request.node.callspec.id}"
    story = Story(name, 9, {**KEYS, **UNDER_THE_STORAGE_LOCK, **SHORT_WAITS, **kind}, ())
    play = PlayOnS3(Path(name), story, judge, hudi_on_s3=hudi_on_s3, port=port)
    play.write_ours(Step("upsert", rows(range(3), 1)))
    overtake_each_other(play)

    found = hudi_on_s3.rows(play.path)
    assert_same(found, story.expected(play.steps), SCHEMA, "Hudi reads what both wrote")
    read = HudiTable.open(play.path, storage_options=options_of(port)).scan().to_arrow()
    assert not differences(found, read), "both read the same"
    assert b'"expired":true' in play.storage.read(LOCK_PATH)
