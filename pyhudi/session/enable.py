"""The switch for unchanged scripts: `pyhudi.enable(spark)`.

After it, `spark.read.format("hudi")` and `df.write.format("hudi")` use PyHudi's native plan, and `spark.sql` accepts
Hudi's statements, in every session of this flavour (classic or Connect) in this process, also inside `foreachBatch`. It
replaces public properties and methods (`SparkSession.read`, `.readStream`, `.sql` and `.table`, `DataFrame.write`,
`.writeStream` and `.writeTo`, `Catalog.cacheTable` and the like), and `disable(spark)` restores them. Other formats and
statements go to Spark unchanged. Source: tried on Spark 3.5 to 4.3, classic and Connect.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog

from pyhudi.errors import ConfigError
from pyhudi.session.caching import CATALOG_CALLS, catalog_call
from pyhudi.session.data_source import show_data_source
from pyhudi.session.named_writes import HudiAwareTableWriter
from pyhudi.session.reader_writer import HudiAwareReader, HudiAwareWriter
from pyhudi.session.streams import HudiAwareStreamReader, HudiAwareStreamWriter
from pyhudi.session.temp_views import FORMATS, ORIGINALS, original_method
from pyhudi.spark import capabilities
from pyhudi.spark.worker_python import is_on_connect, name_own_python

__all__ = ["FORMATS", "disable", "enable"]

# The settings in Hudi's quick-start, and the classes of its jar in their values.
_OF_THE_JAR = ("spark.sql.catalog.spark_catalog", "spark.sql.extensions", "spark.kryo.registrator")
_HUDI_CLASS = re.compile(r"org\.apache\.(?:hudi\.|spark\.(?:sql\.hudi\.|\w*Hoodie))")
_NO_JAR = re.compile(r"CANNOT_LOAD_CATALOG|Failed to register classes with Kryo|ClassNotFoundException")
_lock = threading.Lock()


def enable(spark: SparkSession) -> None:
    """Make `format("hudi")` mean PyHudi in sessions of this session's flavour. Calling it again changes nothing.

    Raises: ConfigError if settings of the session name classes of Hudi's jar, and the session has no such jar.
    """
    session_class, frame_class = _classes(spark)
    _check_settings(spark)
    name_own_python(spark)
    if capabilities.PRESENT.has_data_sources:
        show_data_source(spark)
    from pyhudi.session.sql import SparkSqlSession, hudi_aware_sql, hudi_aware_table, name_of

    def about_cache(call: str, catalog: Catalog, text: str, *more: object) -> object:
        name = name_of(text)
        table = None if name is None else SparkSqlSession(catalog._sparkSession).find_table(name)
        if table is None:
            return original_method(catalog, call)(catalog, text, *more)
        return catalog_call(call, catalog, table)(*more)

    with _lock:
        _replace(session_class, "read", HudiAwareReader)
        _replace(frame_class, "write", HudiAwareWriter)
        _replace(session_class, "readStream", HudiAwareStreamReader)
        _replace(frame_class, "writeStream", HudiAwareStreamWriter)
        _replace_method(session_class, "sql", hudi_aware_sql)
        _replace_method(session_class, "table", hudi_aware_table)
        for call in CATALOG_CALLS:
            _replace_method(type(spark.catalog), call, partial(about_cache, call))
        _replace_write_to(frame_class)


def _check_settings(spark: SparkSession) -> None:
    """Check the settings of Hudi's quick-start: without Hudi's jar, Spark fails at the first name or job."""
    settings = {key: spark.conf.get(key, None) or "" for key in _OF_THE_JAR}
    of_hudi = {key: text for key, text in settings.items() if _HUDI_CLASS.search(text)}
    if not of_hudi:
        return
    try:
        spark.catalog.currentDatabase()
        if "spark.kryo.registrator" in of_hudi:
            spark.range(1).repartition(1).collect()
    except Exception as error:
        if _NO_JAR.search(str(error)) is None:
            raise
        pairs = ", ".join(f"{key}={text}" for key, text in of_hudi.items())
        raise ConfigError(
            f"This session has settings that name classes of Apache Hudi's jar, which it does not have: {pairs}. "
            "Leave them out where the session is made (spark.stop(), then build it again); PyHudi needs no settings."
        ) from error


def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session's flavour. It does nothing if PyHudi is not enabled."""
    session_class, frame_class = _classes(spark)
    with _lock:
        for place in [place for place in ORIGINALS if place[0] in (session_class, frame_class, type(spark.catalog))]:
            setattr(*place, ORIGINALS.pop(place))


def _classes(spark: SparkSession) -> tuple[type, type]:
    """The classes of this session and of its DataFrames."""
    if is_on_connect(spark):
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        return ConnectSession, ConnectFrame
    if not isinstance(spark, SparkSession):
        raise ConfigError(f"enable and disable take a SparkSession, not {type(spark).__name__}.")
    if not capabilities.PRESENT.has_classic_package:
        return SparkSession, DataFrame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    return SparkSession, ClassicFrame


def _replace(
    owner: type,
    name: str,
    wrap: type[HudiAwareReader | HudiAwareWriter | HudiAwareStreamReader | HudiAwareStreamWriter],
) -> None:
    if (owner, name) in ORIGINALS:
        return
    original = owner.__dict__[name]
    ORIGINALS[owner, name] = original
    setattr(owner, name, property(lambda self: wrap(self, original.__get__(self)), doc=original.__doc__))


def _replace_method(owner: type, name: str, ours: Callable[..., object]) -> None:
    if (owner, name) in ORIGINALS:
        return
    original = owner.__dict__[name]
    ORIGINALS[owner, name] = original

    @functools.wraps(original)
    def method(self: object, *args: object, **more: object) -> object:
        return ours(self, *args, **more)

    setattr(owner, name, method)


def _replace_write_to(owner: type, name: str = "writeTo") -> None:
    if (owner, name) in ORIGINALS:
        return
    original = owner.__dict__[name]
    ORIGINALS[owner, name] = original

    @functools.wraps(original)
    def method(self: DataFrame, table: str) -> HudiAwareTableWriter:
        return HudiAwareTableWriter(self, original(self, table), table)

    setattr(owner, name, method)
