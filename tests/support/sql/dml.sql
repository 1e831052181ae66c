-- case: insert into adds rows of a key that is there
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1), (2, 'b', 20.0, 1);
INSERT INTO t VALUES (1, 'c', 30.0, 2);
SELECT id, name, price, ts FROM t ORDER BY id, ts;
-- expect: [{"id": 1, "name": "a", "price": 10.0, "ts": 1}, {"id": 1, "name": "c", "price": 30.0, "ts": 2}, {"id": 2, "name": "b", "price": 20.0, "ts": 1}]

-- case: insert into with a list of columns leaves the others null
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t (id, price, name, ts) VALUES (1, 10.0, 'a', 1), (2, 20.0, 'b', 1);
INSERT INTO t (ts, id) VALUES (5, 3);
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 10.0, "ts": 1}, {"id": 2, "name": "b", "price": 20.0, "ts": 1}, {"id": 3, "name": null, "price": null, "ts": 5}]

-- case: insert into with too few values
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
-- refused
SELECT id, name, ts FROM t;
-- expect: []

-- case: insert into casts as an assignment does
CREATE TABLE t (id INT, name STRING, price DECIMAL(10,2), day DATE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (CAST(1 AS BIGINT), 'a', 12.345, DATE '2024-01-02');
INSERT INTO t SELECT CAST(2 AS DOUBLE), 5, 7, TIMESTAMP '2024-01-03 04:05:06';
SELECT id, name, CAST(price AS STRING) AS price, CAST(day AS STRING) AS day FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": "12.35", "day": "2024-01-02"}, {"id": 2, "name": "5", "price": "7.00", "day": "2024-01-03"}]

-- case: insert into refuses a text for a number
CREATE TABLE t (id INT, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'x');
-- refused
SELECT id, price FROM t;
-- expect: []

-- case: insert into a partitioned table takes partition columns last
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING, hh STRING) USING hudi PARTITIONED BY (dt, hh) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t PARTITION (dt = '2024-01-01', hh = '10') SELECT 1, 'a', 1;
INSERT INTO t PARTITION (dt = '2024-01-01', hh) SELECT 2, 'b', 1, '11';
INSERT INTO t PARTITION (dt, hh) SELECT 3, 'c', 1, '2024-01-02', '12';
INSERT INTO t VALUES (4, 'd', 1, '2024-01-03', '13');
SELECT id, name, ts, dt, hh FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 1, "dt": "2024-01-01", "hh": "10"}, {"id": 2, "name": "b", "ts": 1, "dt": "2024-01-01", "hh": "11"}, {"id": 3, "name": "c", "ts": 1, "dt": "2024-01-02", "hh": "12"}, {"id": 4, "name": "d", "ts": 1, "dt": "2024-01-03", "hh": "13"}]

-- case: insert overwrite replaces partitions
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y'), (3, 'c', 1, 'z');
INSERT OVERWRITE t PARTITION (dt = 'x') SELECT 4, 'd', 1;
SELECT id, name, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "ts": 1, "dt": "y"}, {"id": 3, "name": "c", "ts": 1, "dt": "z"}, {"id": 4, "name": "d", "ts": 1, "dt": "x"}]
INSERT OVERWRITE TABLE t PARTITION (dt) SELECT 5, 'e', 1, 'y';
SELECT id, name, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 5, "name": "e", "ts": 1, "dt": "y"}]
INSERT OVERWRITE t SELECT 6, 'f', 1, 'z';
SELECT id, name, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 6, "name": "f", "ts": 1, "dt": "z"}]

-- case: insert overwrite of a table without partitions replaces all rows
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT OVERWRITE t VALUES (3, 'c');
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 3, "name": "c"}]

-- case: insert by name matches columns by name
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t BY NAME SELECT CAST(1.5 AS DOUBLE) AS price, 1 AS id, 'a' AS name;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 1.5}]

-- case: insert into a table without a key
CREATE TABLE t (id INT, name STRING) USING hudi;
INSERT INTO t VALUES (1, 'a'), (1, 'a');
INSERT INTO t SELECT id + 1, name FROM t;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}, {"id": 1, "name": "a"}, {"id": 2, "name": "a"}, {"id": 2, "name": "a"}]

-- case: insert as upsert by the table's settings
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', hoodie.spark.sql.insert.into.operation = 'upsert');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2), (3, 'd', 1);
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "c", "ts": 2}, {"id": 2, "name": "b", "ts": 1}, {"id": 3, "name": "d", "ts": 1}]

-- case: insert with the policy drop leaves out keys that are there
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', hoodie.datasource.insert.dup.policy = 'drop');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2), (3, 'd', 1);
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 1}, {"id": 2, "name": "b", "ts": 1}, {"id": 3, "name": "d", "ts": 1}]

-- case: insert with the policy fail refuses keys that are there
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', hoodie.datasource.insert.dup.policy = 'fail');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2), (3, 'd', 1);
-- refused
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 1}, {"id": 2, "name": "b", "ts": 1}]

-- case: insert in the old strict mode refuses keys that are there
-- differs: Hudi 1.2.0 does not look at the old options any more.
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', hoodie.sql.insert.mode = 'strict');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (1, 'c');
-- refused
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]

-- case: insert in the old upsert mode replaces rows
-- differs: Hudi 1.2.0 does not look at the old options any more.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', hoodie.sql.insert.mode = 'upsert');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2);
SELECT id, name FROM t ORDER BY id, name;
-- expect: [{"id": 1, "name": "c"}, {"id": 2, "name": "b"}]

-- case: bulk insert by the old setting
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', hoodie.sql.bulk.insert.enable = 'true', hoodie.sql.insert.mode = 'non-strict');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (1, 'c');
SELECT id, name FROM t ORDER BY id, name;
-- expect: [{"id": 1, "name": "a"}, {"id": 1, "name": "c"}, {"id": 2, "name": "b"}]

-- case: update changes the rows that the condition is true for
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1), (2, 'b', 20.0, 1), (3, NULL, NULL, 1);
UPDATE t SET price = price * 2, name = concat(name, '!') WHERE id <= 2;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a!", "price": 20.0, "ts": 1}, {"id": 2, "name": "b!", "price": 40.0, "ts": 1}, {"id": 3, "name": null, "price": null, "ts": 1}]
UPDATE t SET ts = 5 WHERE price IS NULL;
UPDATE t SET name = 'all';
UPDATE t AS x SET x.price = 1 WHERE x.id IN (SELECT 2);
UPDATE t SET price = NULL WHERE id = 1;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "all", "price": null, "ts": 1}, {"id": 2, "name": "all", "price": 1.0, "ts": 1}, {"id": 3, "name": "all", "price": null, "ts": 5}]

-- case: update of an older ordering value
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 5);
UPDATE t SET name = 'b', ts = 1 WHERE id = 1;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 5}]

-- case: update casts as an assignment does
CREATE TABLE t (id INT, name STRING, price INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20);
UPDATE t SET price = CAST(7.2 AS DOUBLE) WHERE id = 1;
UPDATE t SET name = 12 WHERE id = 2;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 7}, {"id": 2, "name": "12", "price": 20}]

-- case: update with a text for a number
CREATE TABLE t (id INT, price INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 10);
UPDATE t SET price = '12' WHERE id = 1;
SELECT id, price FROM t ORDER BY id;
-- expect: [{"id": 1, "price": 12}]

-- case: update of the key is refused
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
UPDATE t SET id = 2 WHERE id = 1;
-- refused
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}]

-- case: update of a partition column
CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
UPDATE t SET dt = 'z' WHERE id = 1;
-- refused
SELECT id, name, dt FROM t ORDER BY id, dt;
-- expect: [{"id": 1, "name": "a", "dt": "x"}, {"id": 2, "name": "b", "dt": "y"}]

-- case: update of a merge on read table
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1, 'x'), (2, 'b', 20.0, 1, 'x'), (3, 'c', 30.0, 1, 'y');
UPDATE t SET price = price + 1 WHERE dt = 'x';
UPDATE t SET name = upper(name), ts = ts + 1 WHERE id > 1;
SELECT id, name, price, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 11.0, "ts": 1, "dt": "x"}, {"id": 2, "name": "B", "price": 21.0, "ts": 2, "dt": "x"}, {"id": 3, "name": "C", "price": 30.0, "ts": 2, "dt": "y"}]

-- case: update of a table without a key
CREATE TABLE t (id INT, name STRING) USING hudi;
INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b');
UPDATE t SET name = 'c' WHERE id = 1;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "c"}, {"id": 1, "name": "c"}, {"id": 2, "name": "b"}]

-- case: update of a field of a struct
-- only: spark
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t SELECT 1, named_struct('a', 1, 'b', 'x');
UPDATE t SET s = named_struct('a', s.a + 1, 'b', s.b) WHERE s.b = 'x';
SELECT id, s.a AS a, s.b AS b FROM t ORDER BY id;

-- case: delete takes the rows that the condition is true for
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1), (2, 'b', 20.0, 1), (3, NULL, NULL, 1), (4, 'd', 40.0, 9);
DELETE FROM t WHERE price > 15 AND id < 4;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 10.0, "ts": 1}, {"id": 3, "name": null, "price": null, "ts": 1}, {"id": 4, "name": "d", "price": 40.0, "ts": 9}]
DELETE FROM t WHERE id IN (SELECT 4) OR name IS NULL;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 10.0, "ts": 1}]
DELETE FROM t;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: []

-- case: delete from a partitioned merge on read table
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'x'), (3, 'c', 1, 'y');
UPDATE t SET name = 'z' WHERE id = 2;
DELETE FROM t AS o WHERE o.name = 'z';
DELETE FROM t WHERE dt = 'y';
SELECT id, name, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 1, "dt": "x"}]

-- case: delete where a key stands twice
-- differs: Hudi takes out any of the rows of the key; here it is the one that the condition is true for.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2);
DELETE FROM t WHERE name = 'a';
SELECT id, name, ts FROM t ORDER BY id, ts;
-- expect: [{"id": 1, "name": "c", "ts": 2}, {"id": 2, "name": "b", "ts": 1}]

-- case: update where a key stands twice
-- differs: Hudi makes one row of the two and leaves another; here each row changes as the statement says.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2);
UPDATE t SET name = concat(name, '!');
SELECT id, name, ts FROM t ORDER BY id, ts, name;
-- expect: [{"id": 1, "name": "a!", "ts": 1}, {"id": 1, "name": "c!", "ts": 2}, {"id": 2, "name": "b!", "ts": 1}]
UPDATE t SET name = 'only this' WHERE id = 1 AND ts = 1;
SELECT id, name, ts FROM t ORDER BY id, ts, name;
-- expect: [{"id": 1, "name": "only this", "ts": 1}, {"id": 1, "name": "c!", "ts": 2}, {"id": 2, "name": "b!", "ts": 1}]

-- case: merge into a key that stands twice
-- differs: Hudi makes one row of the two and leaves another; here each row changes as the statement says.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2), (1, 'd', 3);
MERGE INTO t USING (SELECT 1 AS k, 'new' AS name) s ON t.id = s.k WHEN MATCHED AND t.name = 'a' THEN DELETE WHEN MATCHED AND t.name = 'c' THEN UPDATE SET name = concat(t.name, s.name);
SELECT id, name, ts FROM t ORDER BY id, ts, name;
-- expect: [{"id": 1, "name": "cnew", "ts": 2}, {"id": 1, "name": "d", "ts": 3}, {"id": 2, "name": "b", "ts": 1}]

-- case: update of one row of a key that stands twice in log files
-- differs: Hudi makes one row of the two; here it is an error.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (1, 'c', 2), (2, 'b', 1);
UPDATE t SET name = 'z' WHERE name = 'a';
-- refused
SELECT id, name, ts FROM t ORDER BY id, ts, name;
-- expect: [{"id": 1, "name": "a", "ts": 1}, {"id": 1, "name": "c", "ts": 2}, {"id": 2, "name": "b", "ts": 1}]

-- case: delete from a table without a key
CREATE TABLE t (id INT, name STRING) USING hudi;
INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b');
DELETE FROM t WHERE id = 1;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b"}]

-- case: merge updates, deletes and inserts
-- differs: Hudi tries all updates before the deletes; here the first clause that fits takes the row.
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1), (2, 'b', 20.0, 1), (3, 'c', 30.0, 1);
MERGE INTO t USING (SELECT 1 AS id, 'a2' AS name, CAST(11.0 AS DOUBLE) AS price, CAST(2 AS BIGINT) AS ts, 'u' AS op UNION ALL SELECT 2, 'b2', CAST(21.0 AS DOUBLE), CAST(2 AS BIGINT), 'd' UNION ALL SELECT 4, 'd2', CAST(41.0 AS DOUBLE), CAST(2 AS BIGINT), 'i' UNION ALL SELECT 5, 'e2', CAST(51.0 AS DOUBLE), CAST(2 AS BIGINT), 'd') s ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT *;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a2", "price": 11.0, "ts": 2}, {"id": 3, "name": "c", "price": 30.0, "ts": 1}, {"id": 4, "name": "d2", "price": 41.0, "ts": 2}]

-- case: merge with expressions of both sides
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1), (2, 'b', 20.0, 1), (3, 'c', 30.0, 1);
MERGE INTO t AS o USING (SELECT 1 AS id, CAST(5.0 AS DOUBLE) AS extra, CAST(2 AS BIGINT) AS ts UNION ALL SELECT 3, CAST(7.0 AS DOUBLE), CAST(2 AS BIGINT) UNION ALL SELECT 9, CAST(9.0 AS DOUBLE), CAST(2 AS BIGINT)) AS n ON o.id = n.id WHEN MATCHED AND o.price + n.extra > 20 THEN UPDATE SET o.price = o.price + n.extra, ts = n.ts WHEN NOT MATCHED THEN INSERT (id, name, ts) VALUES (n.id, concat('n', n.id), n.ts);
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 10.0, "ts": 1}, {"id": 2, "name": "b", "price": 20.0, "ts": 1}, {"id": 3, "name": "c", "price": 37.0, "ts": 2}, {"id": 9, "name": "n9", "price": null, "ts": 2}]

-- case: merge with a table as the source
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
CREATE TABLE u (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO u VALUES (2, 'B', 2), (3, 'C', 2);
MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET name = u.name, ts = u.ts WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 1}, {"id": 2, "name": "B", "ts": 2}, {"id": 3, "name": "C", "ts": 2}]

-- case: merge with an older ordering value leaves the row
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 5);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(1 AS BIGINT) AS ts UNION ALL SELECT 2, 'y', CAST(7 AS BIGINT)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 5}, {"id": 2, "name": "y", "ts": 7}]

-- case: merge deletes with an older ordering value
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 5);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(1 AS BIGINT) AS ts UNION ALL SELECT 2, 'y', CAST(7 AS BIGINT)) s ON t.id = s.id WHEN MATCHED THEN DELETE;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: []

-- case: merge with two source rows of one key and an ordering column
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(3 AS BIGINT) AS ts UNION ALL SELECT 1, 'y', CAST(2 AS BIGINT) UNION ALL SELECT 2, 'p', CAST(1 AS BIGINT) UNION ALL SELECT 2, 'q', CAST(2 AS BIGINT)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x", "ts": 3}, {"id": 2, "name": "q", "ts": 2}]

-- case: merge with two source rows of one key and no ordering column
-- differs: Hudi takes any of them; here it is an error.
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name UNION ALL SELECT 1, 'y') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- refused
SELECT id, length(name) AS letters FROM t ORDER BY id;
-- expect: [{"id": 1, "letters": 1}]

-- case: merge without the key in its condition
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'a' AS name) s ON t.name = s.name WHEN MATCHED THEN UPDATE SET *;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}]

-- case: merge by an expression for the key
-- differs: Hudi wants the key's own name in the source.
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
MERGE INTO t USING (SELECT 0 AS sid, 'x' AS name) s ON t.id = s.sid + 1 WHEN MATCHED THEN UPDATE SET name = s.name;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x"}, {"id": 2, "name": "b"}]

-- case: merge with a source that names the key otherwise
-- differs: Hudi wants the key's own name in the source.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
MERGE INTO t USING (SELECT 1 AS sid, 'x' AS sname, CAST(2 AS BIGINT) AS sts UNION ALL SELECT 3, 'z', CAST(2 AS BIGINT)) s ON t.id = s.sid WHEN MATCHED THEN UPDATE SET name = s.sname, ts = s.sts WHEN NOT MATCHED THEN INSERT (id, name, ts) VALUES (s.sid, s.sname, s.sts);
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x", "ts": 2}, {"id": 2, "name": "b", "ts": 1}, {"id": 3, "name": "z", "ts": 2}]

-- case: merge with a source without the ordering column
-- differs: Hudi wants a value for the ordering column.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 5);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x", "ts": 5}, {"id": 2, "name": "b", "ts": 5}]

-- case: merge with more than the key in its condition
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(2 AS BIGINT) AS ts UNION ALL SELECT 2, 'y', CAST(2 AS BIGINT) UNION ALL SELECT 3, 'z', CAST(2 AS BIGINT)) s ON t.id = s.id AND t.name = 'a' WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts FROM t ORDER BY id, ts;
-- expect: [{"id": 1, "name": "x", "ts": 2}, {"id": 2, "name": "y", "ts": 2}, {"id": 3, "name": "z", "ts": 2}]

-- case: merge of some columns into a merge on read table
-- differs: Hudi tries all updates before the deletes; here the first clause that fits takes the row.
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10.0, 1), (2, 'b', 20.0, 1), (3, 'c', 30.0, 1);
MERGE INTO t USING (SELECT 1 AS id, CAST(99.0 AS DOUBLE) AS price, CAST(2 AS BIGINT) AS ts UNION ALL SELECT 2, CAST(98.0 AS DOUBLE), CAST(2 AS BIGINT)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price, ts = s.ts;
MERGE INTO t USING (SELECT 1 AS id, 'n' AS name, CAST(3 AS BIGINT) AS ts UNION ALL SELECT 3, 'm', CAST(3 AS BIGINT)) s ON t.id = s.id WHEN MATCHED AND s.name = 'm' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts;
SELECT id, name, price, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "n", "price": 99.0, "ts": 3}, {"id": 2, "name": "b", "price": 98.0, "ts": 2}]

-- case: merge of a partitioned table by key and partition
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y');
MERGE INTO t USING (SELECT 1 AS id, 'A' AS name, CAST(2 AS BIGINT) AS ts, 'x' AS dt UNION ALL SELECT 3, 'C', CAST(2 AS BIGINT), 'z') s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "A", "ts": 2, "dt": "x"}, {"id": 2, "name": "b", "ts": 1, "dt": "y"}, {"id": 3, "name": "C", "ts": 2, "dt": "z"}]

-- case: merge of a partitioned table by key alone
-- differs: Hudi looks for the key in the source row's partition only, unless the index is global.
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y');
MERGE INTO t USING (SELECT 1 AS id, 'A' AS name, CAST(2 AS BIGINT) AS ts, 'z' AS dt UNION ALL SELECT 2, 'B', CAST(2 AS BIGINT), 'y') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts, dt FROM t ORDER BY id, dt;
-- expect: [{"id": 1, "name": "A", "ts": 2, "dt": "z"}, {"id": 2, "name": "B", "ts": 2, "dt": "y"}]

-- case: merge that moves rows by a global index
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', hoodie.index.type = 'GLOBAL_SIMPLE', hoodie.simple.index.update.partition.path = 'true');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y');
MERGE INTO t USING (SELECT 1 AS id, 'A' AS name, CAST(2 AS BIGINT) AS ts, 'z' AS dt UNION ALL SELECT 3, 'C', CAST(2 AS BIGINT), 'y') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts, dt FROM t ORDER BY id, dt;
-- expect: [{"id": 1, "name": "A", "ts": 2, "dt": "z"}, {"id": 2, "name": "b", "ts": 1, "dt": "y"}, {"id": 3, "name": "C", "ts": 2, "dt": "y"}]

-- case: merge that inserts a key which another partition has
-- differs: Hudi goes by the key, whatever ON says, and does nothing with a row that no clause is for.
CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', hoodie.index.type = 'GLOBAL_SIMPLE', hoodie.simple.index.update.partition.path = 'false');
INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y');
MERGE INTO t USING (SELECT 1 AS id, 'n' AS name, CAST(2 AS BIGINT) AS ts, 'y' AS dt) s ON t.name = s.name WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts, _hoodie_partition_path FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "n", "ts": 2, "_hoodie_partition_path": "dt=x"}, {"id": 2, "name": "b", "ts": 1, "_hoodie_partition_path": "dt=y"}]

-- case: merge of rows that the source does not have
-- differs: Hudi passes over NOT MATCHED BY SOURCE.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1);
MERGE INTO t USING (SELECT 1 AS id, 'A' AS name, CAST(2 AS BIGINT) AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.name = 'gone';
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "A", "ts": 2}, {"id": 2, "name": "gone", "ts": 1}]

-- case: merge of a table without a key
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi;
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
MERGE INTO t USING (SELECT 'a' AS name, 9 AS id, CAST(7 AS BIGINT) AS ts UNION ALL SELECT 'q', 8, CAST(8 AS BIGINT)) s ON t.name = s.name WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "ts": 1}, {"id": 8, "name": "q", "ts": 8}, {"id": 9, "name": "a", "ts": 1}]

-- case: merge that sets the key to what it is
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id, name = s.name;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x"}]

-- case: merge that sets the key to another value
-- differs: Hudi changes the column and leaves the row under its old key.
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id + 1, name = s.name;
-- refused
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}]

-- case: merge star with a source that lacks a column
-- differs: Hudi wants all columns of the table in the source.
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 10.0);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name UNION ALL SELECT 2, 'y') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x", "price": 10.0}, {"id": 2, "name": "y", "price": null}]

-- case: merge casts as an assignment does
-- differs: Hudi wants the key's own type in the source.
CREATE TABLE t (id INT, name STRING, price INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 10);
MERGE INTO t USING (SELECT CAST(1 AS BIGINT) AS id, 5 AS name, CAST(7.2 AS DOUBLE) AS price UNION ALL SELECT CAST(2 AS BIGINT), 6, CAST(8.2 AS DOUBLE)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "5", "price": 7}, {"id": 2, "name": "6", "price": 8}]

-- case: merge with a clause that is only for some rows
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 10.0), (2, 'b', 20.0), (3, 'c', 30.0);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(1.0 AS DOUBLE) AS price UNION ALL SELECT 2, 'y', CAST(2.0 AS DOUBLE) UNION ALL SELECT 3, 'z', CAST(3.0 AS DOUBLE)) s ON s.id = t.id WHEN MATCHED AND t.price < 15 THEN UPDATE SET price = s.price + t.price WHEN MATCHED AND t.price < 25 THEN UPDATE SET name = s.name;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": 11.0}, {"id": 2, "name": "y", "price": 20.0}, {"id": 3, "name": "c", "price": 30.0}]

-- case: insert by the old upsert mode of the session
-- differs: Hudi 1.2.0 does not look at the old options any more.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
SET hoodie.sql.insert.mode = upsert;
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2);
RESET hoodie.sql.insert.mode;
SELECT id, name FROM t ORDER BY id, name;
-- expect: [{"id": 1, "name": "c"}, {"id": 2, "name": "b"}]

-- case: insert by the old strict mode of the session
-- differs: Hudi 1.2.0 does not look at the old options any more.
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
SET hoodie.sql.insert.mode = strict;
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2);
-- refused
RESET hoodie.sql.insert.mode;
SELECT id, name FROM t ORDER BY id, name;
-- expect: [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]

-- case: insert by the new operation of the session
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
SET hoodie.spark.sql.insert.into.operation = upsert;
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO t VALUES (1, 'c', 2);
RESET hoodie.spark.sql.insert.into.operation;
SELECT id, name FROM t ORDER BY id, name;
-- expect: [{"id": 1, "name": "c"}, {"id": 2, "name": "b"}]

-- case: insert overwrite by the mode dynamic
CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
SET hoodie.datasource.overwrite.mode = dynamic;
INSERT OVERWRITE t SELECT 3, 'c', 'y';
RESET hoodie.datasource.overwrite.mode;
SELECT id, name, dt FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "dt": "x"}, {"id": 3, "name": "c", "dt": "y"}]

-- case: insert overwrite of a partition with no rows
CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
INSERT OVERWRITE t PARTITION (dt = 'x') SELECT 3, 'c' WHERE false;
SELECT id, name, dt FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "dt": "y"}]

-- case: insert overwrite of a partition with a date or null and no rows
-- differs: Hudi leaves the partition without a value as it is.
CREATE TABLE t (id INT, name STRING, dt DATE) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', DATE'2024-01-01'), (2, 'b', DATE'2024-01-02'), (3, 'c', NULL);
INSERT OVERWRITE t PARTITION (dt = DATE'2024-01-01') SELECT 4, 'd' WHERE false;
INSERT OVERWRITE t PARTITION (dt = NULL) SELECT 4, 'd' WHERE false;
SELECT id, name, dt FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "dt": "2024-01-02"}]

-- case: merge by a key with a null partition value
-- differs: Hudi matches by the key alone, whatever the condition says of partition columns.
CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', 'x');
MERGE INTO t USING (SELECT 1 AS id, 'n' AS name, CAST(NULL AS STRING) AS dt UNION ALL SELECT 2, 'm', 'x') s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET name = s.name;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}, {"id": 2, "name": "m"}]

-- case: insert overwrite of some partition columns
-- differs: Hudi also empties the partitions of the given values that get no rows.
CREATE TABLE t (id INT, name STRING, dt STRING, hh STRING) USING hudi PARTITIONED BY (dt, hh) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x', '1'), (2, 'b', 'x', '2'), (3, 'c', 'y', '1');
INSERT OVERWRITE t PARTITION (dt = 'x', hh) SELECT 4, 'd', '1';
SELECT id, name, dt, hh FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "dt": "x", "hh": "2"}, {"id": 3, "name": "c", "dt": "y", "hh": "1"}, {"id": 4, "name": "d", "dt": "x", "hh": "1"}]

-- case: insert of a query with names and comments
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t WITH q AS (SELECT 1 AS id, 'a;b' AS name /* one row */) SELECT id, name FROM q;
INSERT INTO `t` (`id`, `name`) SELECT id + 1, 'it\'s' FROM t;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a;b"}, {"id": 2, "name": "it's"}]

-- case: insert into with a column that the table lacks
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t (id, colour) VALUES (1, 'red');
-- refused
SELECT id, name FROM t;
-- expect: []

-- case: insert into with too many values
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 2);
-- refused
SELECT id, name FROM t;
-- expect: []

-- case: insert into with a null key
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (NULL, 'a');
-- refused
SELECT id, name FROM t;
-- expect: []

-- case: insert of a partition's value that is no text
CREATE TABLE t (id INT, name STRING, hh INT) USING hudi PARTITIONED BY (hh) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t PARTITION (hh = 7) SELECT 1, 'a';
INSERT OVERWRITE t PARTITION (hh = 7) SELECT 2, 'b';
SELECT id, name, hh FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "hh": 7}]

-- case: insert into two keys
CREATE TABLE t (id INT, part INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id,part', preCombineField = 'ts', hoodie.spark.sql.insert.into.operation = 'upsert');
INSERT INTO t VALUES (1, 1, 'a', 1), (1, 2, 'b', 1);
INSERT INTO t VALUES (1, 2, 'c', 2);
UPDATE t SET name = 'd' WHERE part = 1;
DELETE FROM t WHERE id = 1 AND part = 2;
SELECT id, part, name, ts FROM t ORDER BY id, part;
-- expect: [{"id": 1, "part": 1, "name": "d", "ts": 1}]

-- case: update with a column that the table lacks
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
UPDATE t SET colour = 'red';
-- refused
SELECT id, name FROM t;
-- expect: [{"id": 1, "name": "a"}]

-- case: update by a query of another table
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
CREATE TABLE u (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO u VALUES (2, 'B'), (3, 'C');
UPDATE t SET name = 'in u' WHERE id IN (SELECT id FROM u WHERE name = 'B');
DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.name = 'C');
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}, {"id": 2, "name": "in u"}]

-- case: update with other letters in names
CREATE TABLE t (id INT, Name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
UPDATE t SET NAME = concat(nAmE, '!') WHERE ID = 1;
SELECT id, Name FROM t ORDER BY id;
-- expect: [{"id": 1, "Name": "a!"}, {"id": 2, "Name": "b"}]

-- case: delete with other letters in names
CREATE TABLE t (id INT, Name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
DELETE FROM t WHERE ID = 1;
SELECT id, Name FROM t ORDER BY id;
-- expect: [{"id": 2, "Name": "b"}]

-- case: update of a table without an ordering column
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 1.0), (2, 'b', 2.0);
UPDATE t SET name = 'c' WHERE id = 1;
UPDATE t SET price = price + 0.5;
DELETE FROM t WHERE id = 2;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "c", "price": 1.5}]

-- case: update of no rows
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
UPDATE t SET name = 'b' WHERE id = 9;
DELETE FROM t WHERE id = 9;
SELECT id, name FROM t;
-- expect: [{"id": 1, "name": "a"}]

-- case: update and delete of an empty table
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
UPDATE t SET name = 'b';
DELETE FROM t;
MERGE INTO t USING (SELECT 1 AS id, 'a' AS name) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
SELECT id, name FROM t;
-- expect: [{"id": 1, "name": "a"}]

-- case: merge without the key in its condition and another key in the source
-- differs: Hudi looks for the source row's key, whatever the condition says.
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
MERGE INTO t USING (SELECT 5 AS id, 'a' AS name) s ON t.name = s.name WHEN MATCHED THEN UPDATE SET t.name = 'found' WHEN NOT MATCHED THEN INSERT *;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "found"}, {"id": 2, "name": "b"}]

-- case: merge that only inserts
-- differs: Hudi does not look for keys then, and adds rows of keys that are there.
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name UNION ALL SELECT 2, 'y') s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a"}, {"id": 2, "name": "y"}]

-- case: merge that only deletes
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(2 AS BIGINT) AS ts UNION ALL SELECT 3, 'y', 2) s ON t.id = s.id WHEN MATCHED AND s.ts = 2 THEN DELETE;
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 2, "name": "b", "ts": 1}]

-- case: merge with two insert clauses
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1);
MERGE INTO t USING (SELECT 2 AS id, 'x' AS name, CAST(1 AS BIGINT) AS ts UNION ALL SELECT 3, 'y', 1 UNION ALL SELECT 4, 'z', 1) s ON t.id = s.id WHEN NOT MATCHED AND s.name = 'x' THEN INSERT (id, name, ts) VALUES (s.id, 'first', s.ts) WHEN NOT MATCHED AND s.name = 'y' THEN INSERT (id, name, ts) VALUES (s.id, 'second', s.ts);
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "ts": 1}, {"id": 2, "name": "first", "ts": 1}, {"id": 3, "name": "second", "ts": 1}]

-- case: merge with names that need no alias
CREATE TABLE t (id INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(2 AS BIGINT) AS ts UNION ALL SELECT 2, 'y', 2) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts WHEN NOT MATCHED AND name = 'y' THEN INSERT (id, name, ts) VALUES (id, upper(name), ts);
SELECT id, name, ts FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "x", "ts": 2}, {"id": 2, "name": "Y", "ts": 2}]

-- case: merge of two keys
CREATE TABLE t (id INT, part INT, name STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id,part', preCombineField = 'ts');
INSERT INTO t VALUES (1, 1, 'a', 1), (1, 2, 'b', 1);
MERGE INTO t USING (SELECT 1 AS id, 2 AS part, 'x' AS name, CAST(2 AS BIGINT) AS ts UNION ALL SELECT 1, 3, 'y', 2) s ON t.id = s.id AND t.part = s.part WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, part, name, ts FROM t ORDER BY id, part;
-- expect: [{"id": 1, "part": 1, "name": "a", "ts": 1}, {"id": 1, "part": 2, "name": "x", "ts": 2}, {"id": 1, "part": 3, "name": "y", "ts": 2}]

-- case: merge of two partitions with expressions of both sides
-- differs: Hudi refuses values of the table's own columns in a merge-on-read table.
CREATE TABLE t (id INT, total DOUBLE, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 10.0, 1, 'x'), (2, 20.0, 1, 'y');
MERGE INTO t USING (SELECT 1 AS id, CAST(5 AS DOUBLE) AS total, CAST(2 AS BIGINT) AS ts, 'x' AS dt UNION ALL SELECT 2, 6.0, 2, 'y' UNION ALL SELECT 3, 7.0, 2, 'x') s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET total = t.total + s.total, ts = s.ts WHEN NOT MATCHED THEN INSERT *;
MERGE INTO t USING (SELECT 3 AS id, CAST(1 AS DOUBLE) AS total, CAST(3 AS BIGINT) AS ts, 'x' AS dt) s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET total = t.total * 10, ts = s.ts;
SELECT id, total, ts, dt FROM t ORDER BY id;
-- expect: [{"id": 1, "total": 15.0, "ts": 2, "dt": "x"}, {"id": 2, "total": 26.0, "ts": 2, "dt": "y"}, {"id": 3, "total": 70.0, "ts": 3, "dt": "x"}]

-- case: merge with nulls in the source
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 1.0), (2, 'b', 2.0);
MERGE INTO t USING (SELECT 1 AS id, CAST(NULL AS STRING) AS name, CAST(NULL AS DOUBLE) AS price UNION ALL SELECT 3, NULL, NULL) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": null, "price": null}, {"id": 2, "name": "b", "price": 2.0}, {"id": 3, "name": null, "price": null}]

-- case: merge with a condition that is null
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', 2.0);
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name, CAST(1 AS DOUBLE) AS price UNION ALL SELECT 2, 'y', 5.0) s ON t.id = s.id WHEN MATCHED AND t.price < s.price THEN UPDATE SET name = s.name;
SELECT id, name, price FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "a", "price": null}, {"id": 2, "name": "y", "price": 2.0}]

-- case: merge with a case expression in a condition
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS name UNION ALL SELECT 2, 'y') AS s ON (t.id = s.id) WHEN MATCHED AND CASE WHEN t.name = 'a' THEN true ELSE false END THEN UPDATE SET name = CASE WHEN s.name = 'x' THEN 'when matched then' ELSE s.name END;
SELECT id, name FROM t ORDER BY id;
-- expect: [{"id": 1, "name": "when matched then"}, {"id": 2, "name": "b"}]
