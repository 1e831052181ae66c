"""Options of the platform around a table: the metadata table, catalogs, metrics, streaming.

Keys and defaults of Apache Hudi 1.2, and of 0.15 and 1.0 if 1.2 has dropped them. `Family` describes the notation.
"""

from __future__ import annotations

from pyhudi.model.options.spec import Family

__all__ = ["PLATFORM"]

PLATFORM = (
    Family(
        group="Metadata table",
        doc="PyHudi keeps a metadata table up without it.",
        keys="""
            metadata.auto.delete.partitions=true metadata.auto.initialize=true
            metadata.bloom.filter.dynamic.max.entries=100000 metadata.bloom.filter.enable=false
            metadata.bloom.filter.fpp=0.000000001 metadata.bloom.filter.num.entries=10000
            metadata.bloom.filter.type=DYNAMIC_V0
            metadata.compact.max.delta.seconds=7200 metadata.compact.trigger.strategy=NUM_COMMITS
            metadata.derive.from.datatable.clean.policy=true metadata.dir.filter.regex=
            metadata.file.cache.max.size.mb=50
            metadata.index.async=false !metadata.index.bloom.filter.column.list
            metadata.index.bloom.filter.parallelism=200 metadata.index.check.timeout.seconds=900
            metadata.index.column.stats.inMemory.projection.threshold=100000
            metadata.index.column.stats.parallelism=200
            metadata.index.column.stats.processing.mode.override metadata.index.drop !metadata.index.expression.column
            !metadata.index.expression.enable=false
            !metadata.index.expression.options metadata.index.expression.parallelism=200
            metadata.index.partition.stats.parallelism=200 !metadata.index.secondary.column
            metadata.index.secondary.enable=true metadata.index.secondary.parallelism=200
            metadata.max.deltacommits.when_pending=1000 metadata.max.init.parallelism=100000
            metadata.max.logfile.size=2147483648 metadata.max.reader.buffer.size=10485760
            metadata.max.reader.memory=1073741824 metadata.metrics.enable=false
            metadata.optimized.log.blocks.scan.enable=false metadata.range.repartition.random.seed=42
            metadata.range.repartition.sampling.fraction=0.01
            metadata.range.repartition.target.records.per.partition=10000
            metadata.record.index.enable.validation.on.initialization=false metadata.record.level.index.defer.init=false
            metadata.record.preparation.parallelism=0 metadata.repartition.default.partitions=200
            metadata.repartition.min.partitions.threshold=100 metadata.spillable.map.path
            metadata.streaming.write.datatable.write.statuses.coalesce.divisor=5000
            metadata.streaming.write.enabled=false metadata.table.service.manager.actions=
            metadata.table.service.manager.enabled=false metadata.write.concurrency.mode=SINGLE_WRITER
            metadata.write.fail.on.table.service.failures=true
        """,
        accepted={
            "metadata.index.expression.enable": "true",
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
            record.index.input.storage.level=MEMORY_AND_DISK_SER record.index.use.caching=true
        """,
    ),
    Family(
        group="Catalog synchronisation",
        doc="PyHudi registers tables in no catalog yet.",
        keys="""
            datasource.hive_sync.assume_date_partitioning=false datasource.hive_sync.auto_create_database=true
            datasource.hive_sync.base_file_format=PARQUET datasource.hive_sync.batch_num=1000
            datasource.hive_sync.bucket_sync=false datasource.hive_sync.bucket_sync_spec=
            datasource.hive_sync.create_managed_table=false datasource.hive_sync.database=default
            !datasource.hive_sync.enable=false datasource.hive_sync.filter_pushdown_enabled=false
            datasource.hive_sync.filter_pushdown_max_size=1000 datasource.hive_sync.ignore_exceptions=false
            datasource.hive_sync.jdbcurl=jdbc:hive2://localhost:10000
            datasource.hive_sync.metastore.uris=thrift://localhost:9083 datasource.hive_sync.mode
            datasource.hive_sync.omit_metadata_fields=false
            datasource.hive_sync.partition_extractor_class=org.apache.hudi.hive.MultiPartKeysValueExtractor
            datasource.hive_sync.partition_fields= datasource.hive_sync.password=hive
            datasource.hive_sync.recreate_table_on_error=false datasource.hive_sync.schema_string_length_thresh=4000
            datasource.hive_sync.serde_properties datasource.hive_sync.skip_ro_suffix=false
            datasource.hive_sync.support_timestamp=false datasource.hive_sync.sync_as_datasource=true
            datasource.hive_sync.sync_comment=false datasource.hive_sync.table=unknown
            datasource.hive_sync.table.strategy=ALL datasource.hive_sync.table_properties
            datasource.hive_sync.use_jdbc=true datasource.hive_sync.use_pre_apache_input_format=false
            datasource.hive_sync.use_spark_catalog=false datasource.hive_sync.username=hive
            datasource.meta.sync.base.path= !datasource.meta.sync.enable=false
            datasource.meta_sync.condition.sync=false meta.sync.client.tool.class=org.apache.hudi.hive.HiveSyncTool
            meta.sync.decode_partition=false meta.sync.incremental=true meta.sync.metadata_file_listing=true
            meta.sync.no_partition_metadata=false meta.sync.sync_snapshot_with_table_name=true
            meta.sync.touch.partitions.enabled=false meta_sync.global.replicate.timestamp meta_sync.spark.version=
            metaserver.connect.retries=3 metaserver.connect.retry.delay=1 !metaserver.enabled=false
            metaserver.uris=thrift://localhost:9090
        """,
    ),
    Family(
        group="Metrics",
        doc="PyHudi has no such reporter: use PROMETHEUS, PROMETHEUS_PUSHGATEWAY, SLF4J, CONSOLE or INMEMORY.",
        keys="""
            metrics.cloudwatch.maxDatumsPerRequest=20 metrics.cloudwatch.metric.prefix=
            metrics.cloudwatch.namespace=Hudi metrics.cloudwatch.report.period.seconds=60 metrics.configs.properties=
            metrics.datadog.api.key metrics.datadog.api.key.skip.validation=false metrics.datadog.api.key.supplier
            metrics.datadog.api.site metrics.datadog.api.timeout.seconds=3 metrics.datadog.metric.host
            metrics.datadog.metric.prefix metrics.datadog.metric.tags metrics.datadog.report.period.seconds=30
            metrics.executor.enable metrics.graphite.host=localhost metrics.graphite.metric.prefix
            metrics.graphite.port=4756 metrics.graphite.report.period.seconds=30 metrics.jmx.host=localhost
            metrics.jmx.port=9889 metrics.m3.env=production metrics.m3.host=localhost metrics.m3.port=9052
            metrics.m3.service=hoodie metrics.m3.tags=
        """,
        accepted={"metrics.executor.enable": "false"},
    ),
    Family(
        group="Bootstrap",
        doc="`pyhudi.bootstrap` and the operation bootstrap take the folder, the mode selector and its regex.",
        keys="""
            bootstrap.base.path bootstrap.data.queries.only=false
            bootstrap.full.input.provider=org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider
            bootstrap.index.class=org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex
            bootstrap.index.enable=true bootstrap.index.type=HFILE
            bootstrap.mode.selector=org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector
            bootstrap.mode.selector.regex=.* bootstrap.mode.selector.regex.mode=METADATA_ONLY
            bootstrap.parallelism=1500
            bootstrap.partitionpath.translator.class=org.apache.hudi.client.bootstrap.translator.IdentityBootstrapPartitionPathTranslator
        """,
    ),
    Family(
        group="Error table",
        doc="Bad rows fail the write; nothing is set aside.",
        keys="""
            errortable.base.path !errortable.enable=false errortable.insert.shuffle.parallelism=200
            errortable.source.rdd.persist=false errortable.target.table.name
            errortable.upsert.shuffle.parallelism=200 errortable.validate.recordcreation.enable=true
            errortable.validate.targetschema.enable=false errortable.write.class
            errortable.write.failure.strategy=ROLLBACK_COMMIT errortable.write.union.enable=false
        """,
    ),
    Family(
        group="Validators",
        doc="Validators of streams and of rows before a write are not there; hoodie.precommit.validators are.",
        keys="""
            precommit.validators.streaming.offset.tolerance.percentage=0.0 !prewrite.validators=
        """,
    ),
    Family(
        group="Lock retries",
        doc="A writer asks for the lock again and again until hoodie.write.lock.wait_time_ms has passed.",
        keys="""
            write.lock.client.num_retries=50 write.lock.client.wait_time_ms_between_retry=5000
            write.lock.max_wait_time_ms_between_retry=16000 write.lock.num_retries=15
        """,
    ),
    Family(
        group="Early conflict detection",
        doc="Each marker is compared with those of others as it is made, whatever the strategy's name; nothing polls.",
        keys="""
            write.concurrency.async.conflict.detector.initial_delay_ms=0
            write.concurrency.async.conflict.detector.period_ms=30000
            write.concurrency.early.conflict.detection.strategy
        """,
    ),
    Family(
        group="File system view and retries",
        doc="PyHudi lists folders itself and keeps no view between calls.",
        keys="""
            filesystem.operation.retry.enable=false filesystem.operation.retry.exceptions=
            filesystem.operation.retry.initial_interval_ms=100 filesystem.operation.retry.max_interval_ms=2000
            filesystem.operation.retry.max_numbers=4 filesystem.remote.backup.view.enable=true
            filesystem.view.incr.timeline.sync.enable=false filesystem.view.remote.host=localhost
            filesystem.view.remote.port=26754 filesystem.view.remote.retry.enable=false
            filesystem.view.remote.retry.exceptions= filesystem.view.remote.retry.initial_interval_ms=100
            filesystem.view.remote.retry.max_interval_ms=2000 filesystem.view.remote.retry.max_numbers=3
            filesystem.view.remote.timeout.secs=300 filesystem.view.rocksdb.base.path=/tmp/hoodie_timeline_rocksdb
            filesystem.view.secondary.type=MEMORY filesystem.view.spillable.bootstrap.base.file.mem.fraction=0.05
            filesystem.view.spillable.clustering.mem.fraction=0.02
            filesystem.view.spillable.compaction.mem.fraction=0.1 filesystem.view.spillable.dir=/tmp/
            filesystem.view.spillable.log.compaction.mem.fraction=0.02 filesystem.view.spillable.mem=104857600
            filesystem.view.spillable.replaced.mem.fraction=0.05 filesystem.view.type=MEMORY
        """,
    ),
    Family(
        group="Timeline server and markers",
        doc="There is no timeline server; markers are files.",
        keys="""
            embed.timeline.server=true embed.timeline.server.async=false embed.timeline.server.gzip=true
            embed.timeline.server.port=0 embed.timeline.server.reuse.enabled=false embed.timeline.server.threads=-1
            instant_state.timeline_server_based.enabled=false
            instant_state.timeline_server_based.force_refresh.request.number=100 markers.delete.parallelism=100
            markers.timeline_server_based.batch.interval_ms=50 markers.timeline_server_based.batch.num_threads=20
        """,
        accepted={
            "embed.timeline.server": "false",
        },
    ),
    Family(
        group="HBase index",
        doc="Hudi itself removed this index.",
        keys="""
            hbase.index.update.partition.path=false index.hbase.bucket.number=8
            index.hbase.desired_puts_time_in_secs=600 index.hbase.dynamic_qps=false index.hbase.get.batch.size=100
            index.hbase.kerberos.user.keytab index.hbase.kerberos.user.principal
            index.hbase.master.kerberos.principal index.hbase.max.qps.fraction
            index.hbase.max.qps.per.region.server=1000 index.hbase.min.qps.fraction index.hbase.put.batch.size=100
            index.hbase.put.batch.size.autocompute=false
            index.hbase.qps.allocator.class=org.apache.hudi.index.hbase.DefaultHBaseQPSResourceAllocator
            index.hbase.qps.fraction=0.5 index.hbase.regionserver.kerberos.principal index.hbase.rollback.sync=false
            index.hbase.security.authentication=simple index.hbase.sleep.ms.for.get.batch
            index.hbase.sleep.ms.for.put.batch index.hbase.table index.hbase.zk.connection_timeout_ms=15000
            index.hbase.zk.session_timeout_ms=60000 index.hbase.zknode.path index.hbase.zkpath.qps_root=/QPS_ROOT
            index.hbase.zkport index.hbase.zkquorum
        """,
    ),
    Family(
        group="Memory and executors",
        doc="Batches stream; memory is bounded by row groups and, for log files, by the limits in bytes of this group.",
        keys="""
            common.diskmap.compression.enabled=true common.spillable.diskmap.type=BITCASK
            consistency.check.enabled=false consistency.check.initial_interval_ms=2000 consistency.check.max_checks=7
            consistency.check.max_interval_ms=300000 memory.compaction.fraction=0.6
            memory.dfs.buffer.max.size=16777216 memory.merge.fraction=0.6 memory.writestatus.failure.fraction=0.1
            write.buffer.limit.bytes=4194304
            write.buffer.record.cache.limit=131072 write.buffer.record.sampling.rate=64
            write.executor.disruptor.buffer.limit.bytes=1024 write.executor.disruptor.wait.strategy=BLOCKING_WAIT
            write.executor.type=SIMPLE
        """,
    ),
    Family(
        group="Streamer",
        doc="This release has no streamer.",
        keys="""
            streamer.source.kafka.value.deserializer.class=io.confluent.kafka.serializers.KafkaAvroDeserializer<deltastreamer.source.kafka.value.deserializer.class
        """,
    ),
    Family(
        group="Spark SQL",
        doc="UPDATE, DELETE and MERGE INTO look for no key a second time in any case.",
        keys="""
            spark.sql.optimized.writes.enable=true
        """,
    ),
)
