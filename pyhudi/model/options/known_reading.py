"""Options of reading that PyHudi decides itself or does not do yet.

Keys and defaults of Apache Hudi 1.2, and of 0.15 and 1.0 where they are gone since. `family.py` says how to read it.
"""

from __future__ import annotations

from pyhudi.model.options.family import Family
from pyhudi.model.options.spec import Door

__all__ = ["READING"]

READING = (
    Family(
        group="Reading",
        doc="PyHudi plans its reads itself.",
        keys="""
            !datasource.merge.type=payload_combine !datasource.query.incremental.format=latest_state
            !datasource.read.begin.instanttime !datasource.read.create.filesystem.relation=false
            !datasource.read.end.instanttime !datasource.read.extract.partition.values.from.path=false
            datasource.read.file.index.list.partitions.from.catalog=false
            datasource.read.file.index.listing.mode=lazy
            datasource.read.file.index.listing.partition-path-prefix.analysis.enabled=true
            datasource.read.file.index.optimize.listing.using.path.filter=false
            datasource.read.incr.fallback.fulltablescan.enable=true datasource.read.incr.filters=
            datasource.read.incr.path.glob= datasource.read.incr.skip_cluster=false
            datasource.read.incr.skip_compact=false datasource.read.incr.table.version
            datasource.read.partition.value.extractor.enabled=false !datasource.read.paths
            datasource.read.schema.use.end.instanttime=false datasource.read.streaming.table.version
            !datasource.read.table.valued.function.filesystem.relation.subpath=
            !datasource.read.table.valued.function.timeline.relation=false
            datasource.read.table.valued.function.timeline.relation.archived=false
            datasource.read.use.new.parquet.file.format=false datasource.streaming.startOffset=earliest
            enable.data.skipping=true file.index.enable=true read.timeline.holes.resolution.policy=FAIL
            spark.polaris.catalog.class=org.apache.polaris.spark.SparkCatalog
        """,
        accepted={
            "datasource.merge.type": "payload_combine",
            "file.index.enable": "true",
            "enable.data.skipping": "true false",
        },
        doors=frozenset({Door.READ}),
    ),
)
