"""Options of table services and the metadata table.

Keys and defaults of Apache Hudi 1.2, and of 0.15 and 1.0 where they are gone since. `family.py` says how to read it.
"""

from __future__ import annotations

from pyhudi.model.options.family import Family

__all__ = ["SERVICES"]

SERVICES = (
    Family(
        group="Cleaning",
        doc="Cleaning runs at the end of a write, or when it is called, in all partitions; bootstrapped files stay.",
        keys="""
            clean.async.enabled=false<clean.async
            clean.delete.bootstrap.base.file=false<cleaner.delete.bootstrap.base.file
            clean.multiple.enabled=false<clean.allow.multiple
            clean.optimize.using.local.engine.context=true clean.parallelism=200<cleaner.parallelism
        """,
        accepted={
            "clean.async.enabled": "false",
            "clean.delete.bootstrap.base.file": "false",
            "clean.multiple.enabled": "false",
        },
    ),
    Family(
        group="Timeline archive",
        doc="Archiving runs at the end of a write, or when it is called; archive files of version 6 are not merged.",
        keys="""
            archive.async=false archive.delete.parallelism=100 archive.merge.enable=false
            archive.merge.files.batch.size=10 archive.merge.small.file.limit.bytes=20971520
            archivelog.folder=archived !timeline.history.path=history timeline.layout.version=2 !timeline.path=timeline
        """,
        accepted={
            "archive.async": "false",
            "archive.merge.enable": "false",
        },
    ),
    Family(
        group="Clustering",
        doc="A clustering runs within the write that asks for it, or when it is called; a task for each group.",
        keys="""
            clustering.fail.on.pending.ingestion.during.conflict.resolution=false
            clustering.group.read.parallelism=20 clustering.max.parallelism=15
            clustering.plan.generation.use.local.engine.context=false
            clustering.plan.strategy.binary.copy.schema.evolution.enable=false
            layout.optimize.data.skipping.enable=true
        """,
    ),
    Family(
        group="Compaction",
        doc="Compaction runs within the write that asks for it, or when it is called.",
        keys="""
            compact.merge.handle.class=org.apache.hudi.io.FileGroupReaderBasedMergeHandle
            compaction.lazy.block.read=true
            compaction.plan.generator=org.apache.hudi.table.action.compact.plan.generators.HoodieCompactionPlanGenerator
            compaction.reverse.log.read=false datasource.compaction.async.enable=true log.compaction.enable=false
        """,
        accepted={
            "log.compaction.enable": "false",
            "datasource.compaction.async.enable": "false",
        },
    ),
    Family(
        group="Log files",
        doc="Inserts go to base files, or to the log files of their bucket, whatever size those have.",
        keys="""
            logfile.to.parquet.compression.ratio=0.35
        """,
    ),
    Family(
        group="Table services",
        doc="Services run in no other place and not on their own.",
        keys="""
            table.service.manager.actions= table.service.manager.connection.retries=3
            table.service.manager.connection.retry.delay.sec=1 table.service.manager.connection.timeout.sec=300
            table.service.manager.deploy.extra.params table.service.manager.deploy.parallelism=100
            table.service.manager.deploy.queue=default table.service.manager.deploy.resources=spark:4g,4g
            table.service.manager.deploy.username=default !table.service.manager.enabled=false
            table.service.manager.execution.engine=spark table.service.manager.uris=http://localhost:9091
            table.services.enabled=true table.services.incremental.enabled=true
        """,
        accepted={
            "table.services.enabled": "false",
            "table.services.incremental.enabled": "false",
        },
    ),
    Family(
        group="Rollback",
        doc="Failed writes are rolled back before the next write, from the files on storage.",
        keys="""
            rollback.avoid.duplicate.plan=false rollback.instant.backup.dir=.rollback_backup
            rollback.instant.backup.enabled=false rollback.parallelism=100 rollback.using.markers=true
        """,
        accepted={
            "rollback.instant.backup.enabled": "false",
            "rollback.using.markers": "true",
        },
    ),
    Family(
        group="Metadata table",
        doc="PyHudi keeps no metadata table yet: it takes an existing one out before it writes, and lists folders.",
        keys="""
            metadata.auto.delete.partitions=true metadata.auto.initialize=true
            metadata.bloom.filter.dynamic.max.entries=100000 metadata.bloom.filter.enable=false
            metadata.bloom.filter.fpp=0.000000001 metadata.bloom.filter.num.entries=10000
            metadata.bloom.filter.type=DYNAMIC_V0 metadata.compact.max.delta.commits=10
            metadata.compact.max.delta.seconds=7200 metadata.compact.trigger.strategy=NUM_COMMITS
            metadata.derive.from.datatable.clean.policy=true metadata.dir.filter.regex= metadata.enable=true
            metadata.file.cache.max.size.mb=50
            !metadata.global.record.level.index.enable=false<metadata.record.index.enable
            metadata.global.record.level.index.max.filegroup.count=10000<metadata.record.index.max.filegroup.count
            metadata.global.record.level.index.min.filegroup.count=10<metadata.record.index.min.filegroup.count
            metadata.index.async=false metadata.index.bloom.filter.column.list
            metadata.index.bloom.filter.enable=false metadata.index.bloom.filter.file.group.count=4
            metadata.index.bloom.filter.parallelism=200 metadata.index.check.timeout.seconds=900
            metadata.index.column.stats.column.list metadata.index.column.stats.enable=false
            metadata.index.column.stats.file.group.count=2
            metadata.index.column.stats.inMemory.projection.threshold=100000
            metadata.index.column.stats.max.columns.to.index=32 metadata.index.column.stats.parallelism=200
            metadata.index.column.stats.processing.mode.override metadata.index.drop metadata.index.expression.column
            !metadata.index.expression.enable=false metadata.index.expression.file.group.count=2
            metadata.index.expression.options metadata.index.expression.parallelism=200
            metadata.index.partition.stats.enable=false metadata.index.partition.stats.file.group.count=1
            metadata.index.partition.stats.parallelism=200 metadata.index.secondary.column
            metadata.index.secondary.enable=true metadata.index.secondary.parallelism=200
            metadata.log.compaction.blocks.threshold=5 metadata.log.compaction.enable=false
            metadata.max.deltacommits.when_pending=1000 metadata.max.init.parallelism=100000
            metadata.max.logfile.size=2147483648 metadata.max.reader.buffer.size=10485760
            metadata.max.reader.memory=1073741824 metadata.metrics.enable=false
            metadata.optimized.log.blocks.scan.enable=false metadata.range.repartition.random.seed=42
            metadata.range.repartition.sampling.fraction=0.01
            metadata.range.repartition.target.records.per.partition=10000
            metadata.record.index.enable.validation.on.initialization=false metadata.record.index.growth.factor=2.0
            metadata.record.index.max.filegroup.size=1073741824 metadata.record.level.index.defer.init=false
            !metadata.record.level.index.enable=false
            metadata.record.level.index.max.filegroup.count=10<metadata.partitioned.record.index.max.filegroup.count
            metadata.record.level.index.min.filegroup.count=1<metadata.partitioned.record.index.min.filegroup.count
            metadata.record.preparation.parallelism=0 metadata.repartition.default.partitions=200
            metadata.repartition.min.partitions.threshold=100 metadata.spillable.map.path
            metadata.streaming.write.datatable.write.statuses.coalesce.divisor=5000
            metadata.streaming.write.enabled=false metadata.table.service.manager.actions=
            metadata.table.service.manager.enabled=false metadata.write.concurrency.mode=SINGLE_WRITER
            metadata.write.fail.on.table.service.failures=true
        """,
        accepted={
            "metadata.enable": "false",
            "metadata.index.column.stats.enable": "false",
            "metadata.index.bloom.filter.enable": "false",
            "metadata.index.partition.stats.enable": "false",
            "metadata.index.secondary.enable": "false",
            "metadata.index.async": "false",
            "metadata.auto.initialize": "false",
            "metadata.metrics.enable": "false",
            "metadata.streaming.write.enabled": "false",
        },
    ),
    Family(
        group="Record index",
        doc="The record index comes with the metadata table.",
        keys="""
            record.index.input.storage.level=MEMORY_AND_DISK_SER record.index.update.partition.path=false
            record.index.use.caching=true
        """,
    ),
)
