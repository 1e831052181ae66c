-- case: create with two keys
CREATE TABLE t (id INT, part INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id,part');
INSERT INTO t VALUES (1, 2, 'a');
SELECT _hoodie_record_key, name FROM t;

-- case: create partitioned by a column in the middle
CREATE TABLE t (id INT, dt STRING, name STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
DESCRIBE t;
INSERT INTO t VALUES (1, 'name of 1', 'day of 1');
SELECT id, dt, name FROM t;

-- case: create with comments
CREATE TABLE t (id INT COMMENT 'the key', name STRING COMMENT 'it\'s "a" name') USING hudi COMMENT 'a table' TBLPROPERTIES (primaryKey = 'id');
DESCRIBE t;
INSERT INTO t VALUES (1, 'a');
DESCRIBE t;
DESCRIBE t id;

-- case: insert texts with quotes and special characters
CREATE TABLE t (id STRING, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES ('it''s', "double ""quoted"""), ('semi;colon', 'a -- no comment'), ('back\\slash', 'tab\there'), ('ünïcødé', '日本語'), (r'raw\n', '/* no */ comment');
INSERT INTO t VALUES ('a' 'b', 'joined' ' text');
SELECT id, v FROM t;
SELECT id FROM t WHERE v = 'a -- no comment' /* a comment; here */ -- and here
UPDATE t SET v = 'new; value' WHERE id = 'it\'s';
SELECT v FROM t WHERE id = "it's";
DELETE FROM t WHERE id IN ('semi;colon', 'it''s');
SELECT id FROM t;

-- case: update of rows in many ways
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10, 1, 'x'), (2, 'b', 20, 1, 'x'), (3, 'c', 30, 1, 'y'), (4, NULL, NULL, 1, 'y');
UPDATE t SET price = price * 2, ts = 1111 WHERE id = 1;
UPDATE t SET price = 100 WHERE name LIKE 'b%' AND dt = 'x';
UPDATE t AS r SET r.name = upper(r.name) WHERE r.price BETWEEN 25 AND 35;
UPDATE t SET name = 'nobody' WHERE name IS NULL;
UPDATE t SET price = -1 WHERE id = 99;
SELECT id, name, price, ts, dt FROM t ORDER BY id;
UPDATE t SET name = concat(name, '!'), price = CASE WHEN price > 50 THEN 0 ELSE price END;
SELECT id, name, price FROM t ORDER BY id;
UPDATE t SET nope = 1;
UPDATE t SET id = 5 WHERE id = 1;
UPDATE t SET dt = 'z' WHERE id = 1;
UPDATE t SET price = 1, price = 2;
UPDATE t SET price = (SELECT 7) WHERE id IN (SELECT 2);
SELECT id, price FROM t ORDER BY id;

-- case: update of fields of a struct
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING, c: STRUCT<d: INT>>) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t SELECT 1, named_struct('a', 1, 'b', 'x', 'c', named_struct('d', 5));
INSERT INTO t SELECT 2, NULL;
UPDATE t SET s.a = 2 WHERE id = 1;
SELECT id, s.a, s.b, s.c.d FROM t ORDER BY id;
UPDATE t SET t.s.b = 'y', s.c.d = s.a + 4 WHERE id = 1;
SELECT id, s FROM t ORDER BY id;
UPDATE t SET s = named_struct('a', 9, 'b', 'z', 'c', NULL) WHERE id = 1;
SELECT id, s.a, s.b, s.c FROM t ORDER BY id;
UPDATE t SET s.nope = 1;
UPDATE t SET s.a = 7;
SELECT id, s.a FROM t ORDER BY id;

-- case: update of arrays and maps
CREATE TABLE t (id INT, a ARRAY<INT>, m MAP<STRING, INT>) USING hudi TBLPROPERTIES (primaryKey = 'id', type = 'mor');
INSERT INTO t SELECT 1, array(1, 2), map('k', 1);
UPDATE t SET a = array_append(a, 3), m = map_concat(m, map('l', 2)) WHERE id = 1;
SELECT id, a, m FROM t;
UPDATE t SET m['k'] = 5;
UPDATE t SET a = NULL;
SELECT id, a FROM t;

-- case: delete in many ways
CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', type = 'mor');
INSERT INTO t SELECT CAST(id AS INT), concat('n', id), CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END FROM range(10);
DELETE FROM t WHERE id = 1;
DELETE FROM t WHERE dt = 'even' AND id > 6;
DELETE FROM t AS x WHERE x.name IN (SELECT concat('n', 3));
DELETE FROM t WHERE id = 99;
SELECT id, dt FROM t ORDER BY id;
DELETE FROM t WHERE EXISTS (SELECT 1 FROM range(10) r WHERE r.id = t.id AND r.id < 3);
SELECT id FROM t ORDER BY id;
DELETE FROM t WHERE nope = 1;
DELETE FROM t;
SELECT id FROM t;

-- case: update of a table without a key
CREATE TABLE t (id INT, v STRING) USING hudi;
INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b');
UPDATE t SET v = 'z' WHERE id = 1;
SELECT id, v FROM t ORDER BY id;
DELETE FROM t WHERE id = 1;
SELECT id, v FROM t;

-- case: update and delete of one of two rows of a key
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1);
INSERT INTO t VALUES (1, 'b', 2), (2, 'c', 1);
UPDATE t SET v = 'z' WHERE id = 1 AND ts = 1;
SELECT id, v, ts FROM t ORDER BY id, ts;
DELETE FROM t WHERE id = 1 AND ts = 2;
SELECT id, v, ts FROM t ORDER BY id, ts;

-- case: update of both rows of a key
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1);
INSERT INTO t VALUES (1, 'b', 2), (2, 'c', 1);
UPDATE t SET v = concat(v, '!') WHERE id = 1;
SELECT id, v, ts FROM t ORDER BY id, ts;
DELETE FROM t WHERE id = 1;
SELECT id, v, ts FROM t ORDER BY id, ts;

-- case: merge on rows of a key that is there twice
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1);
INSERT INTO t VALUES (1, 'b', 2), (2, 'c', 1);
MERGE INTO t USING (SELECT 1 AS id, 'm' AS v, 3 AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
SELECT id, v, ts FROM t ORDER BY id, ts;

-- case: merge with conditions of both kinds
CREATE TABLE t (id INT, v INT, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1);
MERGE INTO t USING (SELECT CAST(id AS INT) AS id, CAST(id * 10 AS INT) AS v, 2 AS ts FROM range(1, 6)) s ON t.id = s.id WHEN MATCHED AND s.v > 15 AND t.v < 3 THEN UPDATE SET v = s.v, ts = s.ts WHEN NOT MATCHED AND s.v < 45 THEN INSERT *;
SELECT id, v, ts FROM t ORDER BY id;

-- case: merge with an empty source
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v WHERE false) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, v FROM t;

-- case: merge into an empty table
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v, 1 AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, v, ts FROM t;

-- case: merge with a WITH in the source and names in capitals
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO T USING (WITH q AS (SELECT 1 AS ID, 'x' AS V UNION ALL SELECT 2, 'y') SELECT * FROM q) S ON T.ID = S.ID WHEN MATCHED THEN UPDATE SET V = S.V WHEN NOT MATCHED THEN INSERT (ID, V) VALUES (S.ID, S.V);
SELECT id, v FROM t ORDER BY id;

-- case: merge from a view
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
CREATE TEMPORARY VIEW changes AS SELECT 1 AS id, 'x' AS v;
MERGE INTO t USING changes ON t.id = changes.id WHEN MATCHED THEN UPDATE SET t.v = changes.v;
SELECT id, v FROM t;
DROP VIEW changes;

-- case: merge with a cast of types
CREATE TABLE t (id BIGINT, price DECIMAL(10,2), ts TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 10, TIMESTAMP '2024-01-01 00:00:00');
MERGE INTO t USING (SELECT CAST(1 AS BIGINT) AS id, 12.345 AS price, TIMESTAMP '2024-01-02 00:00:00' AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id, price = CAST(s.price AS DECIMAL(10,2)), ts = s.ts;
SELECT id, price, CAST(ts AS STRING) AS ts FROM t;

-- case: merge with nested columns
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t SELECT 1, named_struct('a', 1, 'b', 'x'), array(1);
MERGE INTO t USING (SELECT 1 AS id, named_struct('a', 2, 'b', 'y') AS s, array(2, 3) AS l UNION ALL SELECT 2, NULL, NULL) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, s, l FROM t ORDER BY id;

-- case: merge into a path
CREATE TABLE t (id INT, v STRING) USING hudi LOCATION '{folder}/merged' TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO hudi.`{folder}/merged` AS t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
SELECT id, v FROM t;

-- case: merge with a payload class
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', payloadClass = 'org.apache.hudi.common.model.OverwriteWithLatestAvroPayload');
INSERT INTO t VALUES (1, 'a', 5);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v, 2 AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, v, ts FROM t;

-- case: merge with commit time ordering and no ordering column
CREATE TABLE t (id INT, v STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', type = 'mor');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
MERGE INTO t USING (SELECT 1 AS id, 'n' AS v, 'x' AS dt UNION ALL SELECT 3, 'n', 'y') s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, v, dt FROM t ORDER BY id;
MERGE INTO t USING (SELECT 2 AS id, 'y' AS dt) s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN DELETE;
SELECT id, v, dt FROM t ORDER BY id;

-- case: merge twice in a row
CREATE TABLE t (id INT, n INT, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 0, 0);
MERGE INTO t USING (SELECT 1 AS id, 1 AS n, 1 AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.n, ts = s.ts;
MERGE INTO t USING (SELECT 1 AS id, 1 AS n, 2 AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.n, ts = s.ts;
SELECT id, n, ts FROM t;

-- case: queries of changes
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.table.cdc.enabled' = 'true');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
UPDATE t SET v = 'x', ts = 2 WHERE id = 1;
DELETE FROM t WHERE id = 2;
SELECT op, before IS NULL AS fresh, after IS NULL AS gone FROM hudi_table_changes('t', 'cdc', 'earliest');
SELECT op, get_json_object(before, '$.v') AS was, get_json_object(after, '$.v') AS is_now FROM hudi_table_changes('t', 'cdc', '{t.completed1}', '{t.completed2}');

-- case: names in capitals, with backticks, and of other kinds
CREATE TABLE `Mixed` (`Id` INT, `a name` STRING, `select` INT, `Ünï` STRING) USING hudi TBLPROPERTIES (primaryKey = 'Id');
INSERT INTO mixed VALUES (1, 'x', 5, 'u');
SELECT ID, `a name`, `SELECT`, `ünï` FROM MIXED;
SELECT id FROM `listed`.`mixed` WHERE `select` = 5;
UPDATE Mixed SET `A Name` = 'y' WHERE iD = 1;
SELECT `a name` FROM mixed;
DELETE FROM MIXED WHERE ID = 1;
SELECT id FROM mixed;
DESCRIBE mixed;

-- case: comments everywhere
CREATE /* of a table */ TABLE t (id INT /* the key */, v STRING) /* here */ USING /* ! */ hudi TBLPROPERTIES (primaryKey /* k */ = 'id');
INSERT /* first */ INTO t /* t2 */ VALUES (1, '-- a');
/* before */ UPDATE t SET /* v */ v = '/* b */' WHERE /* all */ true;
SELECT /*+ BROADCAST(t) */ id, v FROM t;
/* a */ /* b */ DELETE FROM t;
SELECT id FROM t;

-- case: EXPLAIN and ANALYZE and CACHE
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
CACHE TABLE t;
SELECT id FROM t;
UNCACHE TABLE t;
ANALYZE TABLE t COMPUTE STATISTICS;
INSERT INTO t VALUES (2, 'b');
SELECT id FROM t ORDER BY id;

-- case: read optimized and other settings of queries
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor');
INSERT INTO t VALUES (1, 'a', 1);
UPDATE t SET v = 'b', ts = 2 WHERE id = 1;
SELECT v FROM t;
SET hoodie.datasource.query.type = read_optimized;
SELECT v FROM t;
SET hoodie.datasource.query.type = snapshot;
SELECT v FROM t;
SELECT v FROM hudi_query('t', 'read_optimized');

-- case: all simple types
CREATE TABLE t (id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, dc DECIMAL(20,4), s STRING, bin BINARY, da DATE, ts TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id');
DESCRIBE t;
INSERT INTO t VALUES (1, true, 1Y, 2S, 3, 4L, CAST(1.5 AS FLOAT), 2.5D, 1234567890.1234, 'x', X'00FF', DATE '2024-02-29', TIMESTAMP '2024-02-29 12:34:56.789012');
INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT id, b, ti, si, i, bi, f, d, dc, s, bin, da, CAST(ts AS STRING) AS ts FROM t ORDER BY id;
UPDATE t SET b = false, ti = 7, dc = dc + 1, da = date_add(da, 1), bin = X'ABCD' WHERE id = 1;
SELECT id, b, ti, dc, da, bin FROM t WHERE id = 1;

-- case: CHAR and VARCHAR
CREATE TABLE t (id INT, c CHAR(3), v VARCHAR(5)) USING hudi TBLPROPERTIES (primaryKey = 'id');
DESCRIBE t;
INSERT INTO t VALUES (1, 'ab', 'abc');
SELECT id, c, v FROM t;
INSERT INTO t VALUES (2, 'abcd', 'abc');

-- case: decimals of all sizes
CREATE TABLE t (id INT, a DECIMAL(4,2), b DECIMAL(18,0), c DECIMAL(38,18), d DECIMAL) USING hudi TBLPROPERTIES (primaryKey = 'id', type = 'mor');
DESCRIBE t;
INSERT INTO t VALUES (1, 12.34, 123456789012345678, 12345678901234567890.123456789012345678, 7);
UPDATE t SET a = -99.99, d = -1 WHERE id = 1;
SELECT id, a, b, c, d FROM t;
INSERT INTO t VALUES (2, 123.45, 1, 1, 1);

-- case: extreme numbers
CREATE TABLE t (id BIGINT, d DOUBLE, f FLOAT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (9223372036854775807, CAST('NaN' AS DOUBLE), CAST('Infinity' AS FLOAT)), (-9223372036854775808, CAST('-Infinity' AS DOUBLE), CAST('NaN' AS FLOAT)), (0, 1.7976931348623157E308D, CAST(1.4E-45 AS FLOAT));
SELECT id, CAST(d AS STRING) AS d, CAST(f AS STRING) AS f, _hoodie_record_key FROM t ORDER BY id;
SELECT id FROM t WHERE d > 5 ORDER BY id;

-- case: dates and times at the edges
CREATE TABLE t (id INT, d DATE, ts TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59.999999'), (2, DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59'), (3, DATE '1970-01-01', TIMESTAMP '2024-01-01 00:00:00+02:00');
SELECT id, CAST(d AS STRING) AS d, CAST(ts AS STRING) AS ts FROM t ORDER BY id;
SELECT id FROM t WHERE ts < TIMESTAMP '1970-01-01 00:00:00';
SELECT id FROM t WHERE d >= '1970-01-01' ORDER BY id;

-- case: times without zone
CREATE TABLE t (id INT, n TIMESTAMP_NTZ) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, TIMESTAMP_NTZ '2024-01-01 12:00:00.123456');
SELECT id, CAST(n AS STRING) AS n FROM t;
DESCRIBE t;

-- case: nested types
CREATE TABLE t (id INT, a ARRAY<STRING>, m MAP<STRING, INT>, s STRUCT<x: INT, y: ARRAY<STRUCT<z: DECIMAL(5,2)>>>) USING hudi TBLPROPERTIES (primaryKey = 'id');
DESCRIBE t;
INSERT INTO t SELECT 1, array('p', NULL, 'q'), map('k', 1, 'l', NULL), named_struct('x', 5, 'y', array(named_struct('z', CAST(1.25 AS DECIMAL(5,2)))));
INSERT INTO t SELECT 2, array(), map(), NULL;
INSERT INTO t SELECT 3, NULL, NULL, named_struct('x', NULL, 'y', NULL);
SELECT id, a, m, s FROM t ORDER BY id;
SELECT id, a[0] AS first, m['k'] AS k, s.x, s.y[0].z FROM t WHERE id = 1;
SELECT id, size(a) AS n FROM t WHERE a IS NOT NULL ORDER BY id;
SELECT id, e FROM t LATERAL VIEW explode(a) x AS e ORDER BY id, e;
INSERT INTO t SELECT 4, array(1, 2), map('n', 5L), named_struct('x', 1, 'y', NULL);
SELECT id, a, m FROM t WHERE id = 4;

-- case: nested types in log files
CREATE TABLE t (id INT, a ARRAY<ARRAY<INT>>, m MAP<STRING, ARRAY<STRING>>, s STRUCT<inner: STRUCT<v: MAP<STRING, DOUBLE>>>, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor');
INSERT INTO t SELECT 1, array(array(1), array(2, 3)), map('k', array('v')), named_struct('inner', named_struct('v', map('d', 1.5D))), 1;
UPDATE t SET a = array(array(9)), ts = 2 WHERE id = 1;
SELECT id, a, m, s, ts FROM t;
UPDATE t SET m = map('n', array('w', NULL)), ts = 3 WHERE id = 1;
SELECT id, a, m, s, ts FROM t;

-- case: keys of many types
CREATE TABLE k_date (d DATE, v INT) USING hudi TBLPROPERTIES (primaryKey = 'd');
INSERT INTO k_date VALUES (DATE '2024-01-02', 1);
UPDATE k_date SET v = 2 WHERE d = DATE '2024-01-02';
SELECT _hoodie_record_key, d, v FROM k_date;
CREATE TABLE k_dec (d DECIMAL(10,3), v INT) USING hudi TBLPROPERTIES (primaryKey = 'd');
INSERT INTO k_dec VALUES (1.5, 1);
SELECT _hoodie_record_key, d, v FROM k_dec;
CREATE TABLE k_bool (b BOOLEAN, n DOUBLE, v INT) USING hudi TBLPROPERTIES (primaryKey = 'b,n');
INSERT INTO k_bool VALUES (true, 1.0, 1);
SELECT _hoodie_record_key, v FROM k_bool;
CREATE TABLE k_ts (t TIMESTAMP, v INT) USING hudi TBLPROPERTIES (primaryKey = 't');
INSERT INTO k_ts VALUES (TIMESTAMP '2024-01-02 03:04:05', 1);
SELECT _hoodie_record_key, v FROM k_ts;
UPDATE k_ts SET v = 5 WHERE t = TIMESTAMP '2024-01-02 03:04:05';
SELECT v FROM k_ts;

-- case: partitions of many types
CREATE TABLE t (id INT, n INT, b BOOLEAN) USING hudi PARTITIONED BY (n, b) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 5, true), (2, -3, false);
SELECT id, n, b, _hoodie_partition_path FROM t ORDER BY id;
SELECT id FROM t WHERE n < 0;
SHOW PARTITIONS t;
CREATE TABLE d (id INT, p DECIMAL(5,2)) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO d VALUES (1, 1.50);
SELECT id, p, _hoodie_partition_path FROM d;
CREATE TABLE f (id INT, p BIGINT) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey = 'id', type = 'mor');
INSERT INTO f VALUES (1, 9000000000);
SELECT id, p FROM f WHERE p = 9000000000;
DELETE FROM f WHERE p > 1;
SELECT id, p FROM f;

-- case: intervals and void
CREATE TABLE t (id INT, i INTERVAL DAY) USING hudi;
CREATE TABLE v USING hudi AS SELECT 1 AS id, NULL AS nothing;

-- case: types of expressions are those of Spark
CREATE TABLE t (id INT, d DECIMAL(10,2), dt DATE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 1.10, DATE '2024-01-31');
SELECT d * 2 AS twice, sum(d) OVER () AS total, add_months(dt, 1) AS later, year(dt) AS y, id / 2 AS half FROM t;
SELECT CASE WHEN id = 1 THEN d END AS x, coalesce(dt, current_date()) AS y, cast(id AS STRING) AS z FROM t;

-- case: alter of columns with schema on read
CREATE TABLE t (id INT, name STRING, n INT, price FLOAT) USING hudi TBLPROPERTIES (primaryKey = 'id', type = 'mor');
SET hoodie.schema.on.read.enable = true;
INSERT INTO t VALUES (1, 'a', 5, 1.5);
ALTER TABLE t ADD COLUMNS (first_new STRING FIRST);
ALTER TABLE t ADD COLUMNS (after_name INT COMMENT 'c' AFTER name);
ALTER TABLE t ALTER COLUMN n TYPE BIGINT;
ALTER TABLE t ALTER COLUMN price TYPE DOUBLE;
ALTER TABLE t ALTER COLUMN name COMMENT 'said';
ALTER TABLE t RENAME COLUMN n TO renamed;
DESCRIBE t;
SELECT id, name, renamed, price, first_new, after_name FROM t;
ALTER TABLE t DROP COLUMN after_name;
ALTER TABLE t ALTER COLUMN price AFTER id;
ALTER TABLE t ALTER COLUMN renamed FIRST;
DESCRIBE t;
INSERT INTO t (id, name, renamed, price, first_new) VALUES (2, 'b', 7, 2.5, 'f');
SELECT id, name, renamed, price, first_new FROM t ORDER BY id;
UPDATE t SET renamed = renamed + 1;
SELECT id, renamed FROM t ORDER BY id;
ALTER TABLE t DROP COLUMNS (first_new, price);
SELECT id, name, renamed FROM t ORDER BY id;
SELECT price FROM t;

-- case: alter of what can't change
CREATE TABLE t (id INT, name STRING, n BIGINT, ts INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
SET hoodie.schema.on.read.enable = true;
INSERT INTO t VALUES (1, 'a', 5, 1, 'x');
ALTER TABLE t DROP COLUMN id;
ALTER TABLE t RENAME COLUMN id TO key;
ALTER TABLE t DROP COLUMN dt;
ALTER TABLE t ALTER COLUMN n TYPE INT;
ALTER TABLE t ALTER COLUMN name TYPE INT;
ALTER TABLE t DROP COLUMN nope;
ALTER TABLE t RENAME COLUMN nope TO other;
ALTER TABLE t RENAME COLUMN n TO name;
ALTER TABLE t ALTER COLUMN name SET NOT NULL;
ALTER TABLE t ADD COLUMNS (name STRING);
ALTER TABLE t DROP COLUMN _hoodie_record_key;
SELECT id, name, n, ts, dt FROM t;

-- case: alter of nested columns
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<k: INT>>) USING hudi TBLPROPERTIES (primaryKey = 'id');
SET hoodie.schema.on.read.enable = true;
INSERT INTO t SELECT 1, named_struct('a', 1, 'b', 'x'), array(named_struct('x', 1)), map('q', named_struct('k', 7));
ALTER TABLE t ADD COLUMNS (s.c DOUBLE);
SELECT id, s FROM t;
ALTER TABLE t ADD COLUMNS (l.element.y STRING);
SELECT id, l FROM t;
ALTER TABLE t ADD COLUMNS (m.value.w INT);
SELECT id, m FROM t;
ALTER TABLE t RENAME COLUMN s.a TO aa;
ALTER TABLE t ALTER COLUMN s.aa TYPE BIGINT;
SELECT id, s FROM t;
ALTER TABLE t DROP COLUMN s.b;
SELECT id, s FROM t;
DESCRIBE t;

-- case: alter types that may grow
CREATE TABLE t (id INT, i INT, f FLOAT, d DECIMAL(6,2), da DATE, s STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
SET hoodie.schema.on.read.enable = true;
INSERT INTO t VALUES (1, 5, 1.5, 12.34, DATE '2024-01-02', '2024-01-03');
ALTER TABLE t ALTER COLUMN i TYPE STRING;
ALTER TABLE t ALTER COLUMN f TYPE STRING;
ALTER TABLE t ALTER COLUMN d TYPE DECIMAL(10,2);
ALTER TABLE t ALTER COLUMN da TYPE STRING;
ALTER TABLE t ALTER COLUMN s TYPE DATE;
SELECT id, i, f, d, da, s FROM t;
ALTER TABLE t ALTER COLUMN d TYPE DECIMAL(8,2);
DESCRIBE t;

-- case: alter of properties
CREATE TABLE t (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
ALTER TABLE t SET TBLPROPERTIES ('hoodie.keep.max.commits' = '40');
SHOW TBLPROPERTIES t ('hoodie.keep.max.commits');
ALTER TABLE t SET TBLPROPERTIES (note = 'a, b = c', other = "it's");
SHOW TBLPROPERTIES t ('note');
SHOW TBLPROPERTIES t (other);
ALTER TABLE t UNSET TBLPROPERTIES ('note');
SHOW TBLPROPERTIES t ('note');
ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('note');
ALTER TABLE t UNSET TBLPROPERTIES ('note');
ALTER TABLE t SET TBLPROPERTIES (primaryKey = 'other');
ALTER TABLE t SET TBLPROPERTIES (comment = 'now said');

-- case: alter of the name
CREATE TABLE t (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1);
ALTER TABLE t RENAME TO renamed;
SELECT id FROM renamed;
INSERT INTO renamed VALUES (2);
SELECT id FROM renamed ORDER BY id;
SELECT id FROM t;
CREATE TABLE other (id INT) USING hudi;
ALTER TABLE renamed RENAME TO other;
ALTER TABLE listed.renamed RENAME TO listed.again;
SELECT count(*) AS n FROM again;

-- case: alter of partitions
CREATE TABLE t (id INT, dt STRING, hh STRING) USING hudi PARTITIONED BY (dt, hh) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'x', '1'), (2, 'x', '2'), (3, 'y', '1');
SHOW PARTITIONS t;
SHOW PARTITIONS t PARTITION (dt = 'x');
ALTER TABLE t DROP PARTITION (dt = 'x', hh = '1');
SELECT id, dt, hh FROM t ORDER BY id;
SHOW PARTITIONS t;
ALTER TABLE t DROP PARTITION (dt = 'nope', hh = '1');
ALTER TABLE t DROP IF EXISTS PARTITION (dt = 'nope', hh = '1');
ALTER TABLE t DROP PARTITION (dt = 'y');
ALTER TABLE t ADD PARTITION (dt = 'z', hh = '9');
ALTER TABLE t RENAME PARTITION (dt = 'y', hh = '1') TO PARTITION (dt = 'y', hh = '2');
SHOW PARTITIONS t PARTITION (nope = 'x');
SELECT id, dt, hh FROM t ORDER BY id;

-- case: alter of a place
CREATE TABLE t (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
ALTER TABLE t SET LOCATION '{folder}/new_place';
ALTER TABLE t SET SERDEPROPERTIES ('a' = 'b');
ALTER TABLE t RECOVER PARTITIONS;
ALTER TABLE t REPLACE COLUMNS (id INT, name STRING);

-- case: alter with nulls and order
CREATE TABLE t (id INT NOT NULL, name STRING NOT NULL) USING hudi TBLPROPERTIES (primaryKey = 'id');
SET hoodie.schema.on.read.enable = true;
INSERT INTO t VALUES (1, 'a');
ALTER TABLE t ALTER COLUMN name DROP NOT NULL;
INSERT INTO t VALUES (2, NULL);
SELECT id, name FROM t ORDER BY id;
ALTER TABLE t ADD COLUMNS (must STRING NOT NULL);

-- case: the statement of show create table makes the table again
CREATE TABLE t (id INT COMMENT 'k', s STRUCT<a: INT>, dt STRING) USING hudi PARTITIONED BY (dt) LOCATION '{folder}/shown' TBLPROPERTIES (primaryKey = 'id', type = 'mor');
DROP TABLE t;
CREATE TABLE t USING hudi LOCATION '{folder}/shown';
SHOW TBLPROPERTIES t ('type');
SHOW TBLPROPERTIES t ('primaryKey');
DESCRIBE t;

-- case: settings
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
SET hoodie.datasource.insert.dup.policy;
SET hoodie.datasource.insert.dup.policy = drop;
SET hoodie.datasource.insert.dup.policy;
INSERT INTO t VALUES (1, 'a');
INSERT INTO t VALUES (1, 'b');
SELECT id, v FROM t;
RESET hoodie.datasource.insert.dup.policy;
INSERT INTO t VALUES (1, 'b');
SELECT id, v FROM t ORDER BY v;

-- case: a property of the table goes before the setting
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', 'hoodie.spark.sql.insert.into.operation' = 'upsert');
SET hoodie.spark.sql.insert.into.operation = insert;
INSERT INTO t VALUES (1, 'a');
INSERT INTO t VALUES (1, 'b');
SELECT id, v FROM t;

-- case: calls with savepoints and rollbacks
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
INSERT INTO t VALUES (2, 'b');
CALL create_savepoint(table => 't', commit_time => '{t.instant1}');
CALL show_savepoints(table => 't');
INSERT INTO t VALUES (3, 'c');
CALL rollback_to_instant(table => 't', instant_time => '{t.instant3}');
SELECT id FROM t ORDER BY id;
CALL rollback_to_savepoint(table => 't', instant_time => '{t.instant1}');
SELECT id FROM t ORDER BY id;
CALL delete_savepoint(table => 't', instant_time => '{t.instant1}');
CALL show_savepoints(table => 't');
CALL create_savepoint('t', '{t.instant1}', 'me', 'why');
CALL create_savepoint(table => 't', commit_time => '20010101000000000');
CALL delete_savepoint(table => 't', instant_time => '20010101000000000');

-- case: calls of table services
CREATE TABLE t (id INT, v STRING, ts INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y');
UPDATE t SET v = 'c', ts = 2 WHERE id = 1;
CALL run_compaction(op => 'schedule', table => 't', options => 'hoodie.compact.inline.max.delta.commits=1');
CALL show_compaction(table => 't');
CALL run_compaction(op => 'run', table => 't');
CALL show_compaction('t');
SELECT id, v, dt FROM t ORDER BY id;
CALL run_compaction(op => 'run', table => 't');
CALL run_compaction(op => 'what', table => 't');
CALL run_clustering(table => 't');
CALL show_clustering(table => 't');
CALL run_clustering(table => 't', order => 'id', op => 'schedule', predicate => "dt = 'x'");
CALL run_clustering(table => 't', op => 'execute');
SELECT id, v, dt FROM t ORDER BY id;
CALL run_clean(table => 't', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1);
CALL show_cleans(table => 't');
SELECT id, v, dt FROM t ORDER BY id;

-- case: calls about data
CREATE TABLE t (id INT, v STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z');
CALL drop_partition(table => 't', partition => 'dt=x');
SELECT id, dt FROM t ORDER BY id;
CALL truncate_table(table => 't', partitions => 'dt=y');
SELECT id, dt FROM t ORDER BY id;
CALL copy_to_temp_view(table => 't', view_name => 'seen');
SELECT id, dt FROM seen;
DROP VIEW seen;
CALL copy_to_table(table => 't', new_table => 'copied');
SELECT id, dt FROM copied;
CALL truncate_table(table => 't');
SELECT id FROM t;
CALL show_table_properties(table => 't', filter => "key = 'hoodie.table.type'");
CALL show_metadata_table_partitions(table => 't');
CALL validate_metadata_table_files(table => 't');
CALL show_invalid_parquet(path => '{folder}/listed/t');
CALL help(cmd => 'show_commits');
CALL repair_add_partition_meta(table => 't');
CALL repair_migrate_partition_meta(table => 't');

-- case: indexes are made, shown, used and dropped
CREATE TABLE t (id INT, name STRING, city STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.metadata.record.index.enable' = 'true');
INSERT INTO t VALUES (1, 'a', 'oslo', 1.5, 1700000000), (2, 'b', 'rome', 2.5, 1710000000), (3, 'c', 'oslo', 3.5, 1720000000);
SHOW INDEXES FROM t;
CREATE INDEX idx_city ON t (city);
SHOW INDEXES FROM t;
SELECT id FROM t WHERE city = 'oslo' ORDER BY id;
UPDATE t SET city = 'bern' WHERE id = 1;
SELECT id FROM t WHERE city = 'oslo';
CREATE INDEX idx_city ON t (city);
CREATE INDEX IF NOT EXISTS idx_city ON t (city);
CREATE INDEX idx_nope ON t (nope);
DROP INDEX idx_city ON t;
DROP INDEX idx_city ON t;
DROP INDEX IF EXISTS idx_city ON t;
SHOW INDEXES IN t;

-- case: indexes of expressions
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'Anna', 1700000000), (2, 'Bob', 1710000000);
CREATE INDEX idx_day ON t USING column_stats(ts) OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd');
SHOW INDEXES FROM t;
SELECT id FROM t WHERE from_unixtime(ts, 'yyyy-MM-dd') = '2023-11-14';
CREATE INDEX idx_upper ON t USING bloom_filters(name) OPTIONS (expr = 'upper');
SELECT id FROM t WHERE upper(name) = 'ANNA';
INSERT INTO t VALUES (3, 'anna', 1720000000);
SELECT id FROM t WHERE upper(name) = 'ANNA' ORDER BY id;
CREATE INDEX idx_what ON t USING column_stats(name) OPTIONS (expr = 'what');
DROP INDEX expr_index_idx_day ON t;
SHOW INDEXES FROM t;

-- case: indexes of keys and statistics
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
CREATE INDEX record_index ON t (id);
SHOW INDEXES FROM t;
INSERT INTO t VALUES (2, 'b');
SELECT id FROM t WHERE id = 2;
DROP INDEX record_index ON t;
CREATE INDEX wrong ON t USING what (name);
SHOW INDEXES FROM nobody;
CREATE INDEX x ON nobody (id);
REFRESH INDEX record_index ON t;

-- case: an index by its type's name
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
CREATE INDEX by_name ON t USING secondary_index (name);
SHOW INDEXES FROM t;
CREATE INDEX on_two ON t (id, name);
SHOW INDEXES FROM t;

-- case: a secondary index on merge on read
CREATE TABLE t (id INT, name STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor', 'hoodie.metadata.record.index.enable' = 'true');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
CREATE INDEX idx_name ON t (name);
UPDATE t SET name = 'c', ts = 2 WHERE id = 1;
SELECT id FROM t WHERE name = 'c';
SELECT id FROM t WHERE name = 'a';
DELETE FROM t WHERE name = 'b';
SELECT id, name FROM t;
