"""Options of tables, writes, reads and services that PyHudi decides itself or does not support yet.

Keys and defaults of Apache Hudi 1.2, and of 0.15 and 1.0 if 1.2 has dropped them. `Family` describes the notation.
"""

from __future__ import annotations

from pyhudi.model.options.spec import ON_READ, Family

__all__ = ["CALLS"]

CALLS = (
    Family(
        group="Table properties",
        doc="Stored in hoodie.properties by PyHudi itself, not chosen by the caller.",
        keys="""
            table.checksum table.create.schema !table.format=native table.index.defs.path table.initial.version=NINE
            table.legacy.payload.class table.log.file.format=HOODIE_LOG<table.rt.file.format
            table.metadata.partitions table.metadata.partitions.inflight
            !table.multiple.base.file.formats.enable=false !table.partial.update.mode table.partition_extractor_class
            table.secondary.indexes.metadata
        """,
    ),
    Family(
        group="File details",
        doc="PyHudi cuts row groups and pages by bytes.",
        keys="""
            orc.block.size=125829120 orc.stripe.size=67108864 parquet.block.size=125829120
            parquet.compression.ratio=0.1 parquet.dictionary.enabled=true parquet.field_id.write.enabled=true
            parquet.flink.rowdata.write.support.class=org.apache.hudi.io.storage.row.HoodieRowDataParquetWriteSupport
            !parquet.outputtimestamptype=TIMESTAMP_MICROS parquet.page.size=1048576
            parquet.spark.row.write.support.class=org.apache.hudi.io.storage.row.HoodieRowParquetWriteSupport
            !parquet.write.config.injector.class !parquet.write.utc-timezone.enabled=true
            !parquet.writelegacyformat.enabled
        """,
        accepted={
            "parquet.writelegacyformat.enabled": "false",
            "parquet.dictionary.enabled": "true",
        },
    ),
    Family(
        group="HFile and Lance",
        doc="This release writes Parquet and ORC.",
        keys="""
            hfile.block.cache.enabled=true hfile.block.cache.size=100 hfile.block.cache.ttl.minutes=60
            hfile.block.size=1048576 hfile.compression.algorithm=GZ hfile.max.file.size=125829120
            hfile.writes.allow.duplicates=false lance.max.file.size=125829120
            lance.read.allocator.size.bytes=268435456 lance.read.metadata.allocator.size.bytes=8388608
            lance.write.allocator.size.bytes=268435456 lance.write.flush.byte.watermark=100663296
        """,
    ),
    Family(
        group="Index tuning",
        doc="PyHudi plans its look-ups itself.",
        keys="""
            bloom.index.bucketized.checking=true bloom.index.bucketized.checking.enable.dynamic.parallelism=false
            bloom.index.fileid.key.sorting.enable=false bloom.index.input.storage.level=MEMORY_AND_DISK_SER
            bloom.index.keys.per.bucket=10000000 bloom.index.parallelism=0 bloom.index.prune.by.ranges=true
            bloom.index.use.caching=true bloom.index.use.metadata=false bloom.index.use.treebased.filter=true
            !bucket.index.partition.expressions bucket.index.partition.rule.type=regex
            bucket.index.query.pruning=true bucket.index.remote.partitioner.enable=false
            expression.index.function
            expression.index.range.metadata.storage.level=MEMORY_AND_DISK_SER expression.index.type=COLUMN_STATS
            global.index.reconcile.parallelism=60 global.simple.index.parallelism=0 index.name
            simple.index.input.storage.level=MEMORY_AND_DISK_SER simple.index.parallelism=0
            simple.index.use.caching=true
        """,
        accepted={
            "bloom.index.use.metadata": "false",
        },
    ),
    Family(
        group="Write details",
        doc="PyHudi plans its tasks and checks itself.",
        keys="""
            !allow.operation.metadata.field=false !assume.date.partitioning=false
            auto.adjust.lock.configs=false !auto.commit=true !avro.schema
            avro.schema.external.transformation=false<avro.schema.externalTransformation avro.schema.validate=false
            avro.write.support.class=org.apache.hudi.avro.HoodieAvroWriteSupport base.path
            block.writes.on.speculative.execution=true bulkinsert.overwrite.operation.type bulkinsert.schema.ddl
            bulkinsert.sort.suffix.record_key=false bulkinsert.shuffle.parallelism=0
            combine.before.delete=true !bulkinsert.user.defined.partitioner.class
            cdc.file.group.iterator.memory.spill.bytes=104857600 !client.init.callback.classes=
            datasource.partition_extractor_class
            datasource.write.row.writer.enable=true !datasource.write.secondarykey.column
            delete.shuffle.parallelism=0 fail.job.on.duplicate.data.file.detection=false
            fail.on.timeline.archiving=true fail.writes.on.inline.table.service.exception=true
            file.group.reader.enabled=true file.index.cache.spillable.mem=524288000
            file.index.cache.use.spillable.map=false file.listing.parallelism=200
            fileid.prefix.provider.class=org.apache.hudi.table.RandomFileIdPrefixProvider
            finalize.write.parallelism=200 fs.atomic_creation.support= insert.shuffle.parallelism=0 !internal.schema
            internal.sql.merge.into.writes=false internal.write.schema.canonicalize=true
            io.factory.class=org.apache.hudi.io.storage.hadoop.HoodieHadoopIOFactory
            !keygen.datetime.parser.class=org.apache.hudi.keygen.parser.HoodieDateTimeParser<deltastreamer.keygen.datetime.parser.class
            !merge.allow.duplicate.on.inserts=true merge.data.validation.enabled=false
            merge.use.record.positions=true
            optimistic.consistency.guard.sleep_time_ms=500 optimized.log.blocks.scan.enable=false
            !partition.metafile.use.base.format=false payload.event.time.field prewrite.cleaner.policy=NONE
            read.blob.inline.mode=DESCRIPTOR record.size.estimation.threshold=1.0
            record.size.estimator.average.metadata.size=0
            record.size.estimator.class=org.apache.hudi.estimator.AverageRecordSizeEstimator
            release.resource.on.completion.enable=true schema.cache.enable=false
            sensitive.config.keys=ssl,tls,sasl,auth,credentials
            storage.class=org.apache.hudi.storage.hadoop.HoodieHadoopStorage
            storage.layout.partitioner.class storage.layout.type=DEFAULT time.generator.type=WAIT_TO_ADJUST_SKEW
            upsert.shuffle.parallelism=0 write.application.id=Unknown
            write.can.ignore.post.commit.failures=false<post.commit.failures.ignored
            write.concat.handle.class=org.apache.hudi.io.HoodieConcatHandle write.empty.clean.interval.hours=-1
            write.ignore.failed=true write.markers.type=TIMELINE_SERVER_BASED
            write.merge.handle.class=org.apache.hudi.io.FileGroupReaderBasedMergeHandle
            write.merge.handle.fallback=true !write.partial.update.schema=
            !write.schema
            write.status.storage.level=MEMORY_AND_DISK_SER write.tagged.record.storage.level=MEMORY_AND_DISK_SER
            write.track.event.time.watermark=false writestatus.class=org.apache.hudi.client.WriteStatus
        """,
        accepted={
            "bulkinsert.user.defined.partitioner.class": "org.apache.hudi.execution.bulkinsert."
            "rowcustomcolumnssortpartitioner org.apache.hudi.execution.bulkinsert.rddcustomcolumnssortpartitioner",
            "combine.before.delete": "true",
            "write.markers.type": "direct",
            "avro.schema.validate": "true",
            "write.ignore.failed": "false",
            "fail.job.on.duplicate.data.file.detection": "false",
            "storage.layout.type": "default bucket",
            "storage.layout.partitioner.class": "org.apache.hudi.table.action.commit.sparkbucketindexpartitioner",
            "time.generator.type": "wait_to_adjust_skew",
            "datasource.write.row.writer.enable": "true false",
        },
    ),
    Family(
        group="Versions",
        doc="A write never changes a table's version; `maintenance.upgrade` and `maintenance.downgrade` do.",
        keys="write.auto.upgrade=true",
        accepted={"write.auto.upgrade": "false"},
    ),
    Family(
        group="Reading",
        doc="PyHudi plans its reads itself.",
        keys="""
            !datasource.merge.type=payload_combine
            !datasource.read.create.filesystem.relation=false
            !datasource.read.extract.partition.values.from.path=false
            datasource.read.file.index.list.partitions.from.catalog=false
            datasource.read.file.index.listing.mode=lazy
            datasource.read.file.index.listing.partition-path-prefix.analysis.enabled=true
            datasource.read.file.index.optimize.listing.using.path.filter=false
            datasource.read.incr.skip_cluster=false
            datasource.read.incr.skip_compact=false !datasource.read.incr.table.version
            datasource.read.partition.value.extractor.enabled=false !datasource.read.paths
            !datasource.read.schema.use.end.instanttime=false datasource.read.streaming.table.version
            !datasource.read.table.valued.function.filesystem.relation.subpath=
            !datasource.read.table.valued.function.timeline.relation=false
            datasource.read.table.valued.function.timeline.relation.archived=false
            datasource.read.use.new.parquet.file.format=false
            enable.data.skipping=true file.index.enable=true
            spark.polaris.catalog.class=org.apache.polaris.spark.SparkCatalog
        """,
        accepted={
            "datasource.merge.type": "payload_combine",
            "file.index.enable": "true",
            "enable.data.skipping": "true false",
        },
        scopes=ON_READ,
    ),
    Family(
        group="Cleaning",
        doc="Cleaning runs at the end of a write, or when it is called, in all partitions; bootstrapped files stay.",
        keys="""
            clean.delete.bootstrap.base.file=false<cleaner.delete.bootstrap.base.file
            clean.multiple.enabled=false<clean.allow.multiple
            clean.optimize.using.local.engine.context=true clean.parallelism=200<cleaner.parallelism
        """,
        accepted={
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
            compaction.reverse.log.read=false log.compaction.enable=false
        """,
        accepted={
            "log.compaction.enable": "false",
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
)
