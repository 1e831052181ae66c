"""A Hive metastore's Thrift interface: the connection, and the folders of tables that are registered there.

Needs the extra `pyhudi[hive]`. The lock provider HIVE_METASTORE speaks over it, too.
Source: the metastore's Thrift interface.
"""

from __future__ import annotations

import importlib
import struct
from typing import Protocol

from pyhudi.errors import ConfigError, StorageError, TableNotFound

__all__ = ["HiveModules", "HiveService", "HiveTransport", "connection", "location_of"]

_PORT = 9083
_PORT_DIGITS_MAX = 5
_TIMEOUT_MS = 30_000


class LockState(Protocol):
    """The metastore's answer about a lock."""

    state: int
    lockid: int


class _Folder(Protocol):
    """The storage descriptor of a table."""

    location: str | None


class _Table(Protocol):
    """The metastore's answer about a table; a view has no folder."""

    sd: _Folder | None


class HiveService(Protocol):
    """The calls of the metastore's Thrift interface; requests are instances of classes that Thrift makes."""

    def lock(self, request: object) -> LockState: ...

    def unlock(self, request: object) -> None: ...

    def heartbeat(self, request: object) -> None: ...

    def get_table(self, dbname: str, tbl_name: str) -> _Table: ...


class HiveTransport(Protocol):
    """The connection that a service speaks over."""

    def close(self) -> None: ...


class HiveModules:
    """The modules of the packages pymetastore and thrift."""

    def __init__(self, need: str) -> None:
        """`need`: subject and verb of the sentence for a missing package. Raises ConfigError."""
        try:
            self.service = importlib.import_module("pymetastore.hive_metastore.ThriftHiveMetastore")
            self.types = importlib.import_module("pymetastore.hive_metastore.ttypes")
            self.sockets = importlib.import_module("thrift.transport.TSocket")
            self.transports = importlib.import_module("thrift.transport.TTransport")
            self.protocols = importlib.import_module("thrift.protocol.TBinaryProtocol")
            self.errors = importlib.import_module("thrift.Thrift")
        except ImportError as error:
            raise ConfigError(f"{need} the package pymetastore: install the extra `pyhudi[hive]`.") from error


def location_of(uris: str, name: str) -> str:
    """Return the folder of a table that is registered at a Hive metastore, as Hudi's sync does it.

    Args:   uris: thrift://host:port, with commas. name: `database.table`; without a database `default`.
    Raises: ConfigError for a name of other parts, and without pymetastore; TableNotFound, StorageError.
    """
    *before, table = name.split(".")
    if len(before) > 1 or not table:
        raise ConfigError(f"A Hive metastore has names such as sales.rides, found {name!r:.200}.")
    hive, database = HiveModules("Names of a Hive metastore need"), before[0] if before else "default"
    client, transport = connection(hive, uris, "--catalog")
    try:
        answer = client.get_table(database, table)
    except hive.types.NoSuchObjectException as error:
        raise TableNotFound(f"The Hive metastore {uris} has no table {database}.{table}.") from error
    except (hive.errors.TException, OSError, ValueError, TypeError, EOFError, struct.error) as error:
        raise StorageError(f"The Hive metastore {uris} refused: {error!r}") from error
    finally:
        transport.close()
    location = answer.sd.location if answer.sd is not None else None
    if not location:
        raise TableNotFound(f"{database}.{table} at the Hive metastore {uris} has no location: it is a view.")
    return location


def connection(
    hive: HiveModules, uris: str, setting: str, timeout_ms: int = _TIMEOUT_MS
) -> tuple[HiveService, HiveTransport]:
    """Connect to the first metastore that answers; return client and transport. `timeout_ms`: of each later call.

    Raises: ConfigError, StorageError.
    """
    problems = []
    for uri in uris.split(","):
        host, _, port = uri.strip().rpartition("//")[2].partition(":")
        if not (port or "0").isdecimal() or len(port) > _PORT_DIGITS_MAX:
            raise ConfigError(f"{setting}={uris}: expected thrift://host:port, found the port {port!r}.")
        plain = hive.sockets.TSocket(host, int(port or _PORT))
        plain.setTimeout(_TIMEOUT_MS)
        transport = hive.transports.TBufferedTransport(plain)
        try:
            transport.open()
        except (hive.errors.TException, OSError, ValueError, OverflowError) as error:
            problems.append(f"{uri.strip()}: {error}")
            continue
        plain.setTimeout(timeout_ms)
        protocol = hive.protocols.TBinaryProtocolAccelerated(transport, fallback=True)  # its C where there is a wheel
        return hive.service.Client(protocol), transport
    raise StorageError(f"No Hive metastore answers: {'; '.join(problems)}. See {setting}.")
