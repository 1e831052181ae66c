"""Settings of the Spark session of all tests."""

from __future__ import annotations

import os

import pyspark

from tests.support.servers.process import free_port

FLAVOUR = os.environ.get("PYHUDI_SPARK", "classic")
# Tests are over before Java's second compiler pays: without it a JVM takes 26 instead of 46 s of processor time for
# tests/spark/test_first_write.py.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.ui.enabled": "false",
    # Java code for whole plans takes longer to compile than a few rows take without it: 77 instead of 91 s for
    # tests/spark/test_merge_on_read.py and test_sql_names.py. Tests in processes of their own leave this as it is.
    "spark.sql.codegen.wholeStage": "false",
    # Nor code for expressions: 64 instead of 95 s of processor time for those two. `spark.catalog` can't list without
    # it, as PyHudi does on Spark 3.5.
    **({} if pyspark.__version__.startswith("3.") else {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}),
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    # A machine that is busy with other work answers late; Spark's own patience with its workers is 15 seconds.
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.network.timeout": "900s",
    "spark.sql.broadcastTimeout": "900",
}


def own_connect_port() -> dict[str, str]:
    """A port for the server of `remote("local")`, which PySpark starts and looks for at 15002 and nowhere else.

    Where another program of the machine has a server there, ours would go to 15003 and we would talk to the other one.
    """
    from pyspark.sql.connect.client import core

    port = free_port()
    # Spark 3.5 has one class for it, later ones a class for the default.
    getattr(core, "DefaultChannelBuilder", core.ChannelBuilder).default_port = staticmethod(lambda: port)
    return {"spark.connect.grpc.binding.port": str(port)}
