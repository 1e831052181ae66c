"""Databases by their JDBC URLs: SQLAlchemy's engine of each, and its errors as ours.

    jdbc:postgresql://host:5432/shop?sslmode=require     psycopg
    jdbc:mysql://host/shop, jdbc:mariadb://host/shop     PyMySQL
    jdbc:sqlite:/data/shop.db                            the standard library

Sessions speak UTC. No message holds a password: URLs appear as kind, host and database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pyhudi.errors import ConfigError, MissingLibrary, StorageError
from pyhudi.model.options.streamer.sql import JdbcOptions
from pyhudi.storage import open_storage
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["JdbcDatabase", "Module", "open_database"]

Module: TypeAlias = Any  # SQLAlchemy, which is imported with the first database
_TIMEOUT_S = 30


def _seconds(text: str) -> int:
    return int(text)


def _milliseconds(text: str) -> int:
    return max(1, int(text) // 1000)


def _same(text: str) -> str:
    return text


def _ssl_of_postgresql(text: str) -> str:
    return "verify-full" if text in ("", "true") else "prefer"


def _tls_of_mysql(text: str) -> dict[str, object] | None:
    """PyMySQL's `ssl`. Java's client looks at certificates only in its modes VERIFY_…, for which it has stores."""
    return {"check_hostname": False, "verify_mode": "none"} if text.lower() in ("true", "required") else None


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of database. `parameters`: of its JDBC URLs → the name of the driver's here, and its value."""

    name: str
    driver: str  # SQLAlchemy's words for it
    package: str
    first_statements: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, Callable[[str], object]]] = field(default_factory=dict)


_MYSQL_PARAMETERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "useSSL": ("ssl", _tls_of_mysql),
    "sslMode": ("ssl", _tls_of_mysql),
    "connectTimeout": ("connect_timeout", _milliseconds),
}
_IN_UTC = ("SET time_zone = '+00:00'",)
_KINDS = {
    "postgresql": _Kind(
        "PostgreSQL",
        "postgresql+psycopg",
        "psycopg",
        ("SET TIME ZONE 'UTC'",),
        {
            **{name: (name, _same) for name in ("sslmode", "sslrootcert", "sslcert", "sslkey")},
            "ssl": ("sslmode", _ssl_of_postgresql),
            "connectTimeout": ("connect_timeout", _seconds),
            "ApplicationName": ("application_name", _same),
        },
    ),
    "mysql": _Kind("MySQL", "mysql+pymysql", "pymysql", _IN_UTC, _MYSQL_PARAMETERS),
    "mariadb": _Kind("MariaDB", "mariadb+pymysql", "pymysql", _IN_UTC, _MYSQL_PARAMETERS),
    "sqlite": _Kind("SQLite", "sqlite", "sqlite3"),
}


@dataclass(frozen=True, slots=True, repr=False)
class JdbcDatabase:
    """A database to read. `where`: for messages."""

    library: Module
    engine: Any
    where: str

    @property
    def is_sqlite(self) -> bool:
        """Does it keep dates and times as texts?"""
        return bool(self.engine.dialect.name == "sqlite")

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection, whose rows stream, in a transaction of its own. Raises as `errors`."""
        with self.errors(), self.engine.connect() as opened:
            yield opened

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise SQLAlchemy's errors as ours.

        Raises: StorageError where the database is away or fails; ConfigError for what it doesn't know, or refuses.
        """
        away = self.library.exc
        try:
            yield
        except away.NoSuchTableError as error:
            raise ConfigError(f"{self.where}: there is no table {error}. Nothing was written.") from error
        except (away.OperationalError, away.InterfaceError, away.InternalError, away.TimeoutError) as error:
            raise StorageError(f"{self.where} can't be read: {_brief(error)}. Nothing was written.") from error
        except away.SQLAlchemyError as error:
            raise ConfigError(f"{self.where}: {_brief(error)}. Nothing was written.") from error


def open_database(settings: PipelineSettings) -> JdbcDatabase:
    """The database of a pipeline; it is connected to with the first read.

    Raises: ConfigError for a URL that can't be understood; MissingLibrary.
    """
    options = settings.options.jdbc
    assert options.url is not None
    word, _, rest = options.url.removeprefix("jdbc:").partition(":")
    kind = _KINDS.get(word)
    if not options.url.startswith("jdbc:") or kind is None:
        raise ConfigError(
            f"{settings.place}: hoodie.streamer.jdbc.url: expected jdbc: and one of {', '.join(_KINDS)}; found "
            f"{word!r:.40}. Other databases: a source of your own (docs/streamer/own-source.md)."
        )
    library = _library(kind)
    if word == "sqlite":
        url, arguments, where = _of_sqlite(library, rest, settings.place)
    else:
        url, arguments, where = _of_server(library, kind, rest, settings)
    engine = library.create_engine(url, connect_args=arguments, pool_size=1, max_overflow=0, hide_parameters=True)
    statements = (*kind.first_statements, *([options.first_statement] if options.first_statement else []))

    def begin(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        connection.commit()

    library.event.listen(engine, "connect", begin)
    return JdbcDatabase(library, engine, where)


def _library(kind: _Kind) -> Module:
    """SQLAlchemy, when the driver is there, too."""
    try:
        import sqlalchemy

        __import__(kind.package)
    except ImportError as error:
        raise MissingLibrary(
            f"JdbcSource needs SQLAlchemy, and {kind.package} for {kind.name}, of which {error.name} is not installed: "
            'pip install "pyhudi[jdbc]".'
        ) from error
    return sqlalchemy


def _of_sqlite(library: Module, rest: str, place: str) -> tuple[Any, dict[str, object], str]:
    """The URL of a file that is only read: a wrong path must not make a new database."""
    path = rest.removeprefix("file:").partition("?")[0]
    if not path or path == ":memory:" or not os.path.exists(path):
        raise ConfigError(f"{place}: hoodie.streamer.jdbc.url: there is no SQLite file {path!r}.")
    name = f"file:{quote(os.path.abspath(path))}"
    query = {"mode": "ro", "uri": "true"}
    arguments: dict[str, object] = {"timeout": _TIMEOUT_S, "check_same_thread": False}
    return library.URL.create("sqlite", database=name, query=query), arguments, f"SQLite {path}"


def _of_server(
    library: Module, kind: _Kind, rest: str, settings: PipelineSettings
) -> tuple[Any, dict[str, object], str]:
    key, options = f"{settings.place}: hoodie.streamer.jdbc.url", settings.options.jdbc
    parts = urlsplit(rest)
    try:
        host, port, database = parts.hostname, parts.port, unquote(parts.path.strip("/"))
    except ValueError as error:
        raise ConfigError(f"{key}: expected one host and a port as a number.") from error
    if not host or not database or "," in parts.netloc:
        raise ConfigError(f"{key}: expected jdbc:{kind.name.lower()}://host:port/database, with one host.")
    arguments: dict[str, object] = {"connect_timeout": _TIMEOUT_S}
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    user = options.user or given.pop("user", None) or unquote(parts.username or "") or None
    password = _password(options, settings) or given.pop("password", None) or unquote(parts.password or "") or None
    for name, text in given.items():
        if name in ("user", "password"):
            continue  # the option's counts
        if name not in kind.parameters:
            raise ConfigError(
                f"{key}: the parameter {name!r:.60} is of Java's driver. Leave it out, or use one of "
                f"{', '.join(kind.parameters)}."
            )
        ours, value = kind.parameters[name]
        try:
            arguments[ours] = value(text)
        except ValueError as error:
            raise ConfigError(f"{key}: {name}={text!r:.60}: expected a number.") from error
    url = library.URL.create(kind.driver, username=user, password=password, host=host, port=port, database=database)
    return url, arguments, f"{kind.name} {database} at {host}{f':{port}' if port else ''}"


def _password(options: JdbcOptions, settings: PipelineSettings) -> str | None:
    if options.password is not None or options.password_file is None:
        return options.password
    folder, _, name = options.password_file.rpartition("/")
    text = open_storage(folder or ".", settings.store).read(name, 1 << 16).decode("utf-8")
    return text.rstrip("\r\n")


def _brief(error: Exception) -> str:
    """The driver's message: SQLAlchemy's own has the statement, and addresses of its pages."""
    text = str(getattr(error, "orig", None) or error)
    return " ".join(text.split())[:500].rstrip(".")
