"""Locks at servers: DynamoDB (moto's), ZooKeeper (in Spark's jars, next to Curator), a metastore of locks only."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import ConfigError, LockTimeout, StorageError
from pyhudi.java.hashes import hash_id_64
from pyhudi.locks import LockOptions, LockProvider, hold, open_lock
from pyhudi.locks.dynamodb import DynamoLock
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.concurrency import DynamoOptions, HiveLockOptions, ZookeeperOptions
from pyhudi.storage import FixedClock, MemoryStorage, SystemClock
from tests.support.servers.process import free_port

Opener = Callable[[str], LockProvider]


@pytest.fixture(scope="module")
def moto_port() -> Iterator[int]:
    pytest.importorskip("moto.server")
    pytest.importorskip("boto3")
    from tests.support.servers.s3_server import s3_server

    with s3_server() as port:
        yield port


@pytest.fixture(scope="module")
def zookeeper_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    pytest.importorskip("kazoo")
    pyspark = pytest.importorskip("pyspark")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    port = free_port()
    command = ["java", "-Xmx64m", "-Dzookeeper.admin.enableServer=false", "-cp", str(jars)]
    command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(port), str(tmp_path_factory.mktemp("zookeeper"))]
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        pytest.skip("no java")
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def metastore_port() -> int:
    """A metastore that knows nothing but locks, behind the package's own Thrift code."""
    pytest.importorskip("pymetastore")
    from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
    from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
    from thrift.server.TServer import TThreadedServer
    from thrift.transport.TSocket import TServerSocket
    from thrift.transport.TTransport import TBufferedTransportFactory

    class Locks:
        def __init__(self) -> None:
            self.mutex, self.last, self.queues = threading.Lock(), 0, {}

        def lock(self, rqst: Any) -> Any:
            with self.mutex:
                self.last += 1
                part = rqst.component[0]
                queue = self.queues.setdefault((part.dbname, part.tablename), [])
                queue.append(self.last)
                state = ttypes.LockState.ACQUIRED if queue[0] == self.last else ttypes.LockState.WAITING
                return ttypes.LockResponse(self.last, state)

        def unlock(self, rqst: Any) -> None:
            with self.mutex:
                self._queue_of(rqst.lockid).remove(rqst.lockid)

        def heartbeat(self, ids: Any) -> None:
            self._queue_of(ids.lockid)

        def _queue_of(self, lock_id: int) -> list[int]:
            for queue in self.queues.values():
                if lock_id in queue:
                    return queue
            raise ttypes.NoSuchLockException("no such lock")

    listening = TServerSocket("127.0.0.1", 0)
    listening.listen()
    port = listening.handle.getsockname()[1]
    listening.listen = lambda: None
    processor = ThriftHiveMetastore.Processor(Locks())
    server = TThreadedServer(processor, listening, TBufferedTransportFactory(), TBinaryProtocolFactory(), daemon=True)
    threading.Thread(target=server.serve, daemon=True).start()
    return int(port)


@pytest.fixture(params=["DYNAMODB", "HIVE_METASTORE", pytest.param("ZOOKEEPER", marks=pytest.mark.spark)])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Opens handles of locks by the lock's name."""
    if request.param == "DYNAMODB":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        url = f"http://127.0.0.1:{request.getfixturevalue('moto_port')}"
        return lambda name: at("DYNAMODB", dynamo=DynamoOptions("locks", name, "us-east-1", url))
    if request.param == "HIVE_METASTORE":
        uri = f"thrift://127.0.0.1:1,thrift://127.0.0.1:{request.getfixturevalue('metastore_port')}"
        return lambda name: at("HIVE_METASTORE", hive=HiveLockOptions("lake", name, uri))
    port = request.getfixturevalue("zookeeper_port")
    return lambda name: at("ZOOKEEPER", zookeeper=ZookeeperOptions("127.0.0.1", port, "/hudi", name, 10.0, 30.0))


def at(provider: str, **options: Any) -> LockProvider:
    return open_lock(LockOptions(provider, retry_wait_ms=20, **options), MemoryStorage(), SystemClock())


def test_a_second_writer_waits_until_the_first_releases(opener: Opener) -> None:
    first, second = opener("waits"), opener("waits")

    assert first.try_acquire(0)
    assert first.is_held
    assert not second.try_acquire(0)
    assert not second.try_acquire(0.1)
    assert not second.is_held
    first.release()
    assert not first.is_held
    assert second.try_acquire(5)
    second.release()


def test_there_are_never_two_holders(opener: Opener) -> None:
    inside, most = [0], [0]

    def work(_: int) -> None:
        with hold(opener("one"), 300):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.002)
            inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))

    assert most == [1]


def test_locks_of_other_names_are_free(opener: Opener) -> None:
    with hold(opener("this"), 5):
        other = opener("that")
        assert other.try_acquire(5)
        other.release()


@pytest.mark.thorough
def test_a_timeout_says_who_holds_the_lock(opener: Opener) -> None:
    with (
        hold(opener("held"), 5),
        pytest.raises(LockTimeout, match=r"process [0-9]+ on|lake\.held"),
        hold(opener("held"), 0.1),
    ):
        pass


def test_a_lease_is_renewed_and_then_deleted(opener: Opener) -> None:
    lock = opener("renewed")
    if not hasattr(lock, "_version"):
        pytest.skip("an item is what has a version")
    assert lock.try_acquire(1)
    before = lock._version
    assert lock._renew()
    assert lock._version != before
    assert lock.is_held
    lock.release()
    assert lock.owner_note == "nobody"


def test_dynamodb_logs_in_with_hudis_keys_and_takes_a_role_on(
    moto_port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{moto_port}")
    given = {
        "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "hoodie.write.lock.dynamodb.table": "locks",
        "hoodie.write.lock.dynamodb.partition_key": "login",
        "hoodie.write.lock.dynamodb.region": "us-east-1",
        "hoodie.write.lock.dynamodb.endpoint_url": f"http://127.0.0.1:{moto_port}",
    }
    keys = {"hoodie.aws.access.key": "AKIA", "hoodie.aws.secret.key": "very-secret", "hoodie.aws.session.token": "t"}
    role = {**keys, "hoodie.aws.role.arn": "arn:aws:iam::123456789012:role/lake"}

    def opened(options: dict[str, str]) -> DynamoLock:
        lock = open_lock(WriteOptions.parse({**given, **options}).lock, MemoryStorage(), SystemClock())
        assert isinstance(lock, DynamoLock)
        return lock

    own, taken_on = opened(keys), opened(role)

    assert own._client._request_signer._credentials.access_key == "AKIA"  # type: ignore[attr-defined]
    assert taken_on._client._request_signer._credentials.access_key.startswith("ASIA")  # type: ignore[attr-defined]
    assert own.try_acquire(0)
    assert not taken_on.try_acquire(0)
    own.release()
    with pytest.raises(StorageError, match="no answer: Unable to locate credentials"):
        opened({})
    with pytest.raises(ConfigError, match=r"DYNAMODB needs both of hoodie\.aws\.access\.key and") as raised:
        opened({"hoodie.aws.secret.key": "very-secret"})
    assert "very-secret" not in str(raised.value)


@pytest.mark.thorough
def test_an_item_that_nobody_renews_is_taken_over(moto_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    options = LockOptions(
        "DYNAMODB", dynamo=DynamoOptions("locks", "left", "us-east-1", f"http://127.0.0.1:{moto_port}")
    )
    clock = FixedClock(1_760_000_000_000)
    lock, dead = (open_lock(options, MemoryStorage(), clock) for _ in range(2))
    assert isinstance(dead, DynamoLock)
    assert dead.try_acquire(0)
    dead._renewal.stop()
    assert not lock.try_acquire(0), "from now on its lease is waited for"
    clock.advance(119_000)
    assert not lock.try_acquire(0)
    clock.advance(2_000)
    assert lock.try_acquire(0)
    assert not dead._renew()
    assert not dead.is_held
    lock.release()


def test_a_lock_that_the_metastore_has_given_up_is_not_held_any_more(metastore_port: int) -> None:
    hive = HiveLockOptions("lake", "given-up", f"thrift://127.0.0.1:{metastore_port}")
    lock: Any = at("HIVE_METASTORE", hive=hive)
    assert lock.try_acquire(1)
    assert lock._renew()
    lock._lock_id += 1000
    assert not lock._renew()
    assert not lock.is_held
    lock.release()


def test_a_lock_of_which_the_metastore_hears_nothing_counts_as_lost(metastore_port: int) -> None:
    hive, clock = HiveLockOptions("lake", "silent", f"thrift://127.0.0.1:{metastore_port}"), FixedClock(0)
    lock: Any = open_lock(LockOptions("HIVE_METASTORE", hive=hive), MemoryStorage(), clock)
    assert lock.try_acquire(1)
    clock.advance(110_000)
    assert lock.is_held
    assert lock._renew()
    clock.advance(110_000)
    assert lock.is_held
    lock._send = refused  # the network is away, for ever
    assert lock._renew()
    clock.advance(20_000)
    assert not lock.is_held
    del lock._send
    lock.release()


def refused(_: object) -> None:
    raise OSError("unreachable")


@pytest.mark.spark
def test_curator_and_we_exclude_each_other(zookeeper_port: int, tmp_path: Path) -> None:
    """The mutex that Hudi uses, in a JVM of its own."""
    (tmp_path / "Mutex.java").write_text(MUTEX)
    pyspark = pytest.importorskip("pyspark")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = ["java", "-cp", str(jars), str(tmp_path / "Mutex.java"), f"127.0.0.1:{zookeeper_port}", "/hudi/shared"]
    ours = at("ZOOKEEPER", zookeeper=ZookeeperOptions("127.0.0.1", zookeeper_port, "/hudi", "shared", 10.0, 30.0))
    assert ours.try_acquire(30)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as jvm:
        assert jvm.stdin
        assert jvm.stdout
        try:
            first = jvm.stdout.readline()
            if not first:
                pytest.skip("this Java has no compiler")
            assert first == "asking\n"
            got: list[str] = []
            answers = jvm.stdout
            reading = threading.Thread(target=lambda: got.append(answers.readline()))
            reading.start()
            reading.join(1)
            assert got == [], "Curator has the lock that we hold"
            ours.release()
            reading.join(20)
            assert got == ["held\n"]
            assert not ours.try_acquire(0.3), "we have the lock that Curator holds"
            print(file=jvm.stdin, flush=True)
            assert jvm.stdout.readline() == "released\n"
            assert ours.try_acquire(10)
            ours.release()
        finally:
            jvm.kill()


MUTEX = """
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class Mutex {
  public static void main(String[] arguments) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(arguments[0], new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
    System.out.println("asking");
    mutex.acquire();
    System.out.println("held");
    System.in.read();
    mutex.release();
    System.out.println("released");
  }
}
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LockOptions("DYNAMODB"), r"dynamodb\.table is not given"),
        (LockOptions("DYNAMODB", dynamo=DynamoOptions("t")), r"dynamodb\.partition_key is not given"),
        (LockOptions("HIVE_METASTORE"), r"hivemetastore\.database is not given"),
        (LockOptions("ZOOKEEPER"), r"zookeeper\.url is not given"),
        (LockOptions("ZOOKEEPER", zookeeper=ZookeeperOptions("h")), r"zookeeper\.base_path is not given"),
    ],
)
def test_what_is_missing_is_named(options: LockOptions, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_lock(options, MemoryStorage(), SystemClock())


def test_a_server_that_does_not_answer_is_an_error_with_its_address() -> None:
    pytest.importorskip("kazoo")
    options = ZookeeperOptions("127.0.0.1:1", None, "/hudi", "x", 1.0, 0.3)
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1"):
        at("ZOOKEEPER", zookeeper=options).try_acquire(0)


def test_hudis_keys_reach_the_providers() -> None:
    options = WriteOptions.parse(
        {
            "hoodie.table.name": "trips",
            "hoodie.write.lock.zookeeper.url": "zk1,zk2",
            "hoodie.write.lock.zookeeper.port": "2181",
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.dynamodb.table": "locks",
            "hoodie.write.lock.dynamodb.region": "eu-central-1",
        }
    ).lock
    assert (options.table_name, options.zookeeper.port, options.dynamo.region) == ("trips", 2181, "eu-central-1")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "found_in_java"),
    [
        ("", "0D6FDE68D55B45DA"),
        ("/data/trips", "C26EF7FDD214AFDA"),
        ("s3://bucket/table", "4DCF035CB614089C"),
        ("s3://bucket/warehouse/lake/trips_of_all_the_cities", "FAD5E5650FDE4AE4"),
    ],
)
def test_an_id_of_a_text_is_the_hash_that_the_library_of_hudi_gives_for_its_seed(text: str, found_in_java: str) -> None:
    assert hash_id_64(text) == found_in_java
