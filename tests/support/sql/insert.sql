-- case: insert by places
CREATE TABLE t (id INT, name STRING, price DOUBLE, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t SELECT 1, 'a', 10, '2021-01-01';
INSERT INTO t VALUES (2, 'b', 20, '2021-01-01');
INSERT INTO TABLE t SELECT 3 AS x, 'c' AS id, 30 AS z, 'p' AS q;
-- differs: Hudi looks for columns by their names first, and finds a text under the name id.
SELECT id, name, price, dt FROM t ORDER BY id;
-- differs: The row of the statement before.
-- expect: [{"id": 1, "name": "a", "price": 10.0, "dt": "2021-01-01"}, {"id": 2, "name": "b", "price": 20.0, "dt": "2021-01-01"}, {"id": 3, "name": "c", "price": 30.0, "dt": "p"}]
INSERT INTO t VALUES (4, 'd', 40);
INSERT INTO t VALUES (4, 'd', 40, 'x', 'y');

-- case: insert of a query that has the table's names in another order
CREATE TABLE t (id INT, name STRING, note STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t SELECT 'my note' AS note, 'my name' AS name, 1 AS id;
INSERT INTO t SELECT 2 AS id, 'my note' AS note, 'my name' AS name;
INSERT INTO t SELECT 3 AS id, 'my note' AS note, 'first' AS other;
INSERT INTO t SELECT 4 AS ID, 'my note' AS NOTE, 'my name' AS Name;
SELECT id, name, note FROM t ORDER BY id;
INSERT OVERWRITE t SELECT 5 AS id, 'my note' AS note, 'my name' AS name;
SELECT id, name, note FROM t ORDER BY id;
CREATE TABLE p (id INT, name STRING, note STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO p PARTITION (dt = 'x') SELECT 1 AS id, 'my note' AS note, 'my name' AS name;
INSERT INTO p SELECT 'x' AS dt, 'my note' AS note, 'my name' AS name, 2 AS id;
INSERT INTO p PARTITION (dt) SELECT 'y' AS dt, 'my note' AS note, 'my name' AS name, 3 AS id;
SELECT id, name, note, dt FROM p ORDER BY id;

-- case: insert with lists of columns
CREATE TABLE t (id INT, name STRING, price DOUBLE, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t (id, name, price, dt) VALUES (1, 'a', 10, 'x');
INSERT INTO t (dt, price, name, id) VALUES ('x', 20, 'b', 2);
INSERT INTO t (dt, id) VALUES ('y', 3);
INSERT INTO t (id, nope) VALUES (3, 4);
INSERT INTO t (id, id, dt) VALUES (3, 4, 'x');
INSERT INTO t (id, dt) VALUES (3);
INSERT INTO t (ID, Dt, NAME) VALUES (4, 'y', 'upper');
SELECT id, name, price, dt FROM t ORDER BY id;

-- case: insert into static partitions
CREATE TABLE t (id INT, name STRING, dt STRING, hh STRING) USING hudi PARTITIONED BY (dt, hh) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t PARTITION (dt = '2021-12-09', hh = '11') SELECT 2, 'a2';
INSERT INTO t PARTITION (dt = '2021-12-09', hh = '12') VALUES (3, 'a3');
INSERT INTO t PARTITION (dt = '2021-12-09') SELECT 9, 'x';
INSERT INTO t PARTITION (dt = '2021-12-09', hh = '11') SELECT 2, 'a2', 'more';
INSERT INTO t PARTITION (id = 4) SELECT 'x', 'y', 'z';
SELECT id, name, dt, hh FROM t ORDER BY id;

-- case: insert into dynamic partitions
CREATE TABLE t (id INT, name STRING, dt STRING, hh STRING) USING hudi PARTITIONED BY (dt, hh) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t PARTITION (dt, hh) SELECT 1 AS id, 'a1' AS name, '2021-12-09' AS dt, '10' AS hh;
INSERT INTO t PARTITION (dt = '2021-12-10', hh) SELECT 2, 'a2', '11';
INSERT INTO t PARTITION (dt, hh) VALUES (3, 'a3', '2021-12-11', '12');
SELECT id, name, dt, hh FROM t ORDER BY id;

-- case: insert with a list of columns and a static partition
CREATE TABLE t (id INT, name STRING, price DOUBLE, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t PARTITION (dt = 'x') (name, id) VALUES ('a', 1);
INSERT INTO t PARTITION (dt = 'x') (id, name, dt) VALUES (2, 'a', 'y');
SELECT id, name, price, dt FROM t;

-- case: insert with a number for a partition of text
CREATE TABLE t (id INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t PARTITION (dt = 20240101) SELECT 1;
SELECT id, dt FROM t;

-- case: insert with a null partition
CREATE TABLE t (id INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, NULL), (2, 'x');
SELECT id, dt FROM t ORDER BY id;
SELECT id FROM t WHERE dt IS NULL;
SHOW PARTITIONS t;

-- case: insert with a null key
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (NULL, 'a');
SELECT id, name FROM t;

-- case: insert by name
CREATE TABLE t (id INT, name STRING, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t BY NAME SELECT 'a' AS name, 1 AS id, CAST(2 AS DOUBLE) AS price;
INSERT INTO t BY NAME SELECT 1 AS id, 'x' AS nope, 'a' AS name;
SELECT id, name, price FROM t;

-- case: insert the rows of other tables
CREATE TABLE plain (k INT, v STRING) USING parquet;
INSERT INTO plain VALUES (1, 'a'), (2, 'b');
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t TABLE plain;
INSERT INTO t FROM plain SELECT k + 10, v WHERE k = 1;
INSERT INTO t SELECT id + 100, upper(name) FROM t;
INSERT INTO t WITH s AS (SELECT 7 AS a, 'seven' AS b) SELECT a, b FROM s;
INSERT INTO t (SELECT 8, 'eight');
INSERT INTO plain SELECT id, name FROM t WHERE id > 100;
SELECT id, name FROM t ORDER BY id;
SELECT k, v FROM plain ORDER BY k;

-- case: WITH before INSERT
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
WITH s AS (SELECT 1 AS a, 'x' AS b) INSERT INTO t SELECT a, b FROM s;
WITH s AS (SELECT 2 AS a), r (b) AS (SELECT 'y') INSERT INTO TABLE t (id, name) SELECT s.a, r.b FROM s CROSS JOIN r;
SELECT id, name FROM t ORDER BY id;
WITH s AS (SELECT id + 1 AS a, name FROM t) INSERT OVERWRITE t SELECT a, name FROM s;
SELECT id, name FROM t ORDER BY id;

-- case: several inserts of one source
CREATE TABLE a (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
CREATE TABLE b (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
FROM (SELECT explode(array(1, 2, 3)) AS n) s INSERT INTO a SELECT CAST(n AS INT) WHERE n < 2 INSERT INTO b SELECT CAST(n AS INT) WHERE n >= 2;
SELECT id FROM a;
SELECT id FROM b;

-- case: insert casts and refuses
CREATE TABLE t (id INT, small SMALLINT, d DECIMAL(5,2), s STRING, b BOOLEAN, day DATE) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1L, 5, 1.239, 12, true, DATE '2024-01-01');
INSERT INTO t VALUES (2, 70000, 1, 'x', true, NULL);
INSERT INTO t VALUES (3, 1, 1234567, 'x', true, NULL);
INSERT INTO t VALUES (4, 1, 1, 'x', 'yes', NULL);
INSERT INTO t VALUES (5, 1, 1, 'x', 1, NULL);
INSERT INTO t VALUES (6, 1, 1, 'x', true, 'not a day');
INSERT INTO t VALUES (7, NULL, NULL, NULL, NULL, NULL);
SELECT id, small, d, s, b, day FROM t ORDER BY id;

-- case: insert defaults
CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, DEFAULT);
SELECT id, name FROM t;

-- case: insert as upsert
CREATE TABLE t (id INT, name STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
SET hoodie.spark.sql.insert.into.operation = upsert;
INSERT INTO t VALUES (1, 'a', 5);
INSERT INTO t VALUES (1, 'b', 6), (2, 'c', 1);
INSERT INTO t VALUES (1, 'z', 2);
SELECT id, name, ts FROM t ORDER BY id;

-- case: insert with duplicates in one statement
CREATE TABLE t (id INT, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 1), (1, 2);
SELECT id, ts FROM t ORDER BY ts;
SET hoodie.spark.sql.insert.into.operation = upsert;
INSERT INTO t VALUES (2, 1), (2, 2);
SELECT id, ts FROM t WHERE id = 2;

-- case: insert as bulk insert
CREATE TABLE t (id INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
SET hoodie.spark.sql.insert.into.operation = bulk_insert;
INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, 'y');
SELECT id, dt FROM t ORDER BY id;

-- case: insert with duplicate policies
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
SET hoodie.datasource.insert.dup.policy = drop;
INSERT INTO t VALUES (1, 'b'), (2, 'c');
SELECT id, v FROM t ORDER BY id;
SET hoodie.datasource.insert.dup.policy = fail;
INSERT INTO t VALUES (1, 'd');
SET hoodie.datasource.insert.dup.policy = none;
INSERT INTO t VALUES (1, 'e');
SELECT id, v FROM t ORDER BY id, v;

-- case: overwrite a table
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT OVERWRITE t SELECT 3, 'c';
SELECT id, v FROM t;
INSERT OVERWRITE TABLE t VALUES (4, 'd'), (5, 'e');
SELECT id, v FROM t ORDER BY id;
INSERT OVERWRITE t SELECT id, v FROM t WHERE id = 4;
SELECT id, v FROM t;
INSERT OVERWRITE t (v, id) VALUES ('f', 6);
SELECT id, v FROM t;
INSERT OVERWRITE t BY NAME SELECT 'g' AS v, 7 AS id;
SELECT id, v FROM t;

-- case: overwrite a table by nothing
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
INSERT OVERWRITE t SELECT 1, 'x' WHERE false;
SELECT id, v FROM t;

-- case: overwrite a partition
CREATE TABLE t (id INT, v STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y');
INSERT OVERWRITE t PARTITION (dt = 'x') SELECT 4, 'd';
SELECT id, v, dt FROM t ORDER BY id;
INSERT OVERWRITE TABLE t PARTITION (dt) SELECT 5, 'e', 'y';
SELECT id, v, dt FROM t ORDER BY id;
INSERT OVERWRITE t SELECT 6, 'f', 'z';
SELECT id, v, dt FROM t ORDER BY id;

-- case: overwrite partitions in dynamic mode
CREATE TABLE t (id INT, v STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', type = 'mor');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y');
SET hoodie.datasource.overwrite.mode = dynamic;
INSERT OVERWRITE t SELECT 4, 'd', 'x';
SELECT id, v, dt FROM t ORDER BY id;
INSERT OVERWRITE t PARTITION (dt) VALUES (5, 'e', 'z');
SELECT id, v, dt FROM t ORDER BY id;

-- case: overwrite partitions in Spark's own dynamic mode
CREATE TABLE t (id INT, v STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y');
SET spark.sql.sources.partitionOverwriteMode = DYNAMIC;
INSERT OVERWRITE TABLE t PARTITION (dt) SELECT 4, 'd', 'x';
SELECT id, v, dt FROM t ORDER BY id;
INSERT OVERWRITE t SELECT 5, 'e', 'y';
SELECT id, v, dt FROM t ORDER BY id;
SET hoodie.datasource.overwrite.mode = static;
INSERT OVERWRITE t SELECT 6, 'f', 'y';
SELECT id, v, dt FROM t ORDER BY id;

-- case: overwrite if not exists and replace where
CREATE TABLE t (id INT, v STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 'x');
INSERT OVERWRITE t PARTITION (dt = 'x') IF NOT EXISTS SELECT 2, 'b';
-- differs: Hudi overwrites all the same; here it is refused.
-- refused
INSERT INTO t REPLACE WHERE id = 1 SELECT 1, 'c', 'x';
SELECT id, v, dt FROM t;
-- differs: Nothing was overwritten.
-- expect: [{"id": 1, "v": "a", "dt": "x"}]

-- case: insert into a path
CREATE TABLE t (id INT, v STRING) USING hudi LOCATION '{folder}/by_path' TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
INSERT INTO hudi.`{folder}/by_path` VALUES (2, 'b');
-- differs: Hudi has no paths in the place of names there.
SELECT id, v FROM t ORDER BY id;
-- differs: The row of the statement before.
-- expect: [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
