-- case: merge with all three actions
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10, 1), (2, 'b', 20, 1), (3, 'c', 30, 1);
CREATE TABLE s (id INT, name STRING, price DOUBLE, ts BIGINT, flag STRING) USING parquet;
INSERT INTO s VALUES (1, 'a2', 11, 2, 'update'), (2, 'b2', 21, 2, 'delete'), (4, 'd', 40, 2, 'insert'), (5, 'e', 50, 2, 'ignore');
MERGE INTO t AS target USING s AS source ON target.id = source.id WHEN MATCHED AND source.flag = 'update' THEN UPDATE SET name = source.name, price = source.price, ts = source.ts WHEN MATCHED AND source.flag = 'delete' THEN DELETE WHEN NOT MATCHED AND source.flag = 'insert' THEN INSERT (id, name, price, ts) VALUES (source.id, source.name, source.price, source.ts);
SELECT id, name, price, ts FROM t ORDER BY id;

-- case: merge star from a hudi table
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
CREATE TABLE s (id INT, name STRING, price DOUBLE, ts BIGINT, dt STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO s VALUES (1, 'a', 10, 1, 'x'), (2, 'b', 20, 1, 'y');
MERGE INTO t USING s ON t.id = s.id AND t.dt = s.dt WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, price, ts, dt FROM t ORDER BY id;
INSERT INTO s VALUES (3, 'c', 30, 1, 'x');
UPDATE s SET price = 99, ts = 2 WHERE id = 1;
MERGE INTO t USING s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, name, price, ts, dt FROM t ORDER BY id;

-- case: merge of some columns
CREATE TABLE t (id INT, name STRING, price DOUBLE, ts BIGINT) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 10, 1), (2, 'b', 20, 1);
MERGE INTO t USING (SELECT 1 AS id, CAST(15 AS DOUBLE) AS price, CAST(2 AS BIGINT) AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price, ts = s.ts;
SELECT id, name, price, ts FROM t ORDER BY id;
MERGE INTO t USING (SELECT 2 AS id, 'z' AS name, CAST(0 AS BIGINT) AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name, t.ts = s.ts;
SELECT id, name, price, ts FROM t ORDER BY id;
MERGE INTO t USING (SELECT 2 AS id, 'y' AS name, CAST(5 AS BIGINT) AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = concat(s.name, '!'), ts = s.ts + 1;
SELECT id, name, price, ts FROM t ORDER BY id;

-- case: merge with an insert of some columns
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
MERGE INTO t USING (SELECT 1 AS id, 'a' AS name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name);
SELECT id, name, price FROM t;
MERGE INTO t USING (SELECT 2 AS id, 'b' AS name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (name) VALUES (s.name);
MERGE INTO t USING (SELECT 2 AS id, 'b' AS name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id);
MERGE INTO t USING (SELECT 2 AS id, 'b' AS name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, nope) VALUES (s.id, s.name);
SELECT id, name, price FROM t;

-- case: merge with two updates
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1);
MERGE INTO t USING (SELECT CAST(id AS INT) AS id, 2 AS ts FROM range(1, 4)) s ON t.id = s.id WHEN MATCHED AND s.id = 1 THEN UPDATE SET v = 'first', ts = s.ts WHEN MATCHED AND s.id <= 2 THEN UPDATE SET v = 'second', ts = s.ts;
SELECT id, v, ts FROM t ORDER BY id;

-- case: merge with VALUES as the source
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (VALUES (1, 'x'), (2, 'y')) AS s (id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- differs: Hudi's MERGE takes no names of columns behind the alias of the source.
SELECT id, v FROM t ORDER BY id;
-- differs: Hudi's MERGE takes no names of columns behind the alias of the source.
-- expect: [{"id": 1, "v": "x"}, {"id": 2, "v": "y"}]

-- case: merge with what it can't be
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id;
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = s.v;
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON t.nope = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
MERGE INTO t USING nobody s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id WHEN MATCHED THEN INSERT *;
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN DELETE;
SELECT id, v FROM t;

-- case: merge that assigns a field of a struct
CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t SELECT 1, named_struct('a', 1, 'b', 'x');
MERGE INTO t USING (SELECT 1 AS id, 5 AS v) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s.a = q.v;
-- differs: Hudi sets whole columns only.
SELECT id, s FROM t;
-- differs: Hudi sets whole columns only.
-- expect: [{"id": 1, "s": {"a": 5, "b": "x"}}]

-- case: merge by a null safe condition and by reversed sides
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON s.id = t.id WHEN MATCHED THEN UPDATE SET v = s.v;
SELECT id, v FROM t;
MERGE INTO t USING (SELECT 1 AS id, 'y' AS v) s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET v = s.v;
-- differs: Hudi compares keys by = only.
SELECT id, v FROM t;
-- differs: Hudi compares keys by = only.
-- expect: [{"id": 1, "v": "y"}]
