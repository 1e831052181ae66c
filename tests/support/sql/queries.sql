-- case: queries of one table
CREATE TABLE t (id INT, city STRING, fare DOUBLE, ts BIGINT) USING hudi PARTITIONED BY (city) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor');
INSERT INTO t VALUES (1, 10.5, 1, 'oslo'), (2, 20.0, 2, 'rome'), (3, 5.25, 3, 'oslo'), (4, NULL, 4, 'bern');
UPDATE t SET fare = 7.0, ts = 9 WHERE id = 3;
SELECT id, fare FROM t WHERE city = 'oslo' ORDER BY id;
SELECT city, count(*) AS n, sum(fare) AS total FROM t GROUP BY city ORDER BY city;
SELECT city, count(*) AS n FROM t GROUP BY city HAVING count(*) > 1;
SELECT DISTINCT city FROM t ORDER BY city DESC LIMIT 2;
SELECT id, rank() OVER (PARTITION BY city ORDER BY fare DESC) AS place FROM t ORDER BY id;
SELECT count(*) AS n, count(fare) AS fares, avg(fare) AS mean FROM t;
SELECT id, city FROM t WHERE fare IS NULL OR city IN ('rome');
SELECT id FROM t WHERE city LIKE 'o%' AND fare BETWEEN 6 AND 8;
SELECT _hoodie_record_key, _hoodie_partition_path FROM t ORDER BY 1;
SELECT * FROM t WHERE false;
SELECT t.* FROM t WHERE false;
SELECT listed.t.id, t.city FROM listed.t WHERE listed.t.id = 2;
TABLE t;
-- differs: Sequence numbers and names of files are each writer's own.
SELECT nope FROM t;

-- case: queries with several tables
CREATE TABLE a (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
CREATE TABLE b (id INT, w STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', type = 'mor');
INSERT INTO a VALUES (1, 'a1'), (2, 'a2'), (3, 'a3');
INSERT INTO b VALUES (2, 'b2'), (3, 'b3'), (4, 'b4');
SELECT a.id, v, w FROM a JOIN b ON a.id = b.id ORDER BY a.id;
SELECT a.id, w FROM a LEFT JOIN b USING (id) ORDER BY a.id;
SELECT coalesce(a.id, b.id) AS id, v, w FROM a FULL OUTER JOIN b ON a.id = b.id ORDER BY 1;
SELECT id FROM a LEFT ANTI JOIN b USING (id);
SELECT id FROM a LEFT SEMI JOIN b USING (id) ORDER BY id;
SELECT a.id, b.id AS other FROM a, b WHERE a.id = b.id - 1 ORDER BY 1;
SELECT x.id, y.id AS other FROM a x CROSS JOIN a y WHERE x.id < y.id ORDER BY 1, 2;
SELECT id FROM a UNION SELECT id FROM b ORDER BY id;
SELECT id FROM a UNION ALL SELECT id FROM b ORDER BY id;
SELECT id FROM a EXCEPT SELECT id FROM b;
SELECT id FROM a INTERSECT SELECT id FROM b ORDER BY id;
SELECT id FROM a WHERE id IN (SELECT id FROM b) ORDER BY id;
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id);
SELECT id, (SELECT max(w) FROM b WHERE b.id = a.id) AS m FROM a ORDER BY id;
WITH c AS (SELECT id FROM a WHERE id > 1), d AS (SELECT c.id, w FROM c JOIN b ON c.id = b.id) SELECT * FROM d ORDER BY id;
WITH a AS (SELECT 99 AS id) SELECT id FROM a;
SELECT q.id FROM (SELECT id FROM a WHERE v <> 'a1') q ORDER BY q.id;
SELECT a.id, l.n FROM a, LATERAL (SELECT count(*) AS n FROM b WHERE b.id >= a.id) l ORDER BY a.id;
FROM a SELECT id WHERE id = 1;
SELECT id, e FROM a LATERAL VIEW explode(array(1, 2)) x AS e WHERE id = 1 ORDER BY e;
SELECT * FROM (SELECT id, v FROM a) PIVOT (max(v) FOR id IN (1 AS one, 2 AS two));
SELECT id FROM a TABLESAMPLE (100 PERCENT) ORDER BY id;

-- case: views
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE VIEW w AS SELECT id, v FROM t WHERE id > 1;
CREATE TEMPORARY VIEW x AS SELECT count(*) AS n FROM w;
SELECT id, v FROM w;
INSERT INTO t VALUES (3, 'c');
SELECT n FROM x;
CREATE OR REPLACE VIEW w AS SELECT id FROM t WHERE id > 2;
SELECT * FROM w;
SELECT n FROM x;
CREATE OR REPLACE TEMP VIEW x AS SELECT t.id FROM t;
SELECT id FROM x ORDER BY id;
SHOW VIEWS;
DESCRIBE w;
DROP VIEW w;
DROP VIEW x;

-- case: time travel
CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a');
UPDATE t SET v = 'b' WHERE id = 1;
INSERT INTO t VALUES (2, 'c');
SELECT id, v FROM t TIMESTAMP AS OF '{t.instant1}';
SELECT id, v FROM t TIMESTAMP AS OF {t.instant2};
SELECT id, v FROM t TIMESTAMP AS OF '{t.instant3}' ORDER BY id;
SELECT id, v FROM t VERSION AS OF '{t.instant2}';
-- differs: Hudi has no VERSION AS OF.
-- expect: [{"id": 1, "v": "b"}]
SELECT x.id, x.v FROM t TIMESTAMP AS OF '{t.instant1}' AS x;
SELECT now.v, was.v AS before FROM t AS now JOIN t TIMESTAMP AS OF '{t.instant1}' AS was ON now.id = was.id;
SELECT id, v FROM t FOR SYSTEM_TIME AS OF '{t.instant2}';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '2099-01-01';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '2099-01-01 00:00:00';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '2099-01-01 00:00:00.000';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '20990101';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '20990101000000';
SELECT count(*) AS n FROM t TIMESTAMP AS OF '2001-01-01';
-- differs: Before the first commit Hudi finds no rows; here there is no such moment.
-- refused
SELECT count(*) AS n FROM t TIMESTAMP AS OF 'yesterday';

-- case: incremental queries
CREATE TABLE t (id INT, v STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1);
UPDATE t SET v = 'x', ts = 2 WHERE id = 1;
INSERT INTO t VALUES (3, 'c', 1);
SELECT id, v FROM hudi_table_changes('t', 'latest_state', 'earliest') ORDER BY id;
SELECT id, v FROM hudi_table_changes('t', 'latest_state', '{t.completed1}') ORDER BY id;
SELECT id, v FROM hudi_table_changes('t', 'latest_state', '{t.completed1}', '{t.completed2}') ORDER BY id;
SELECT id, v FROM hudi_table_changes('listed.t', 'latest_state', '{t.completed2}');
SELECT id, v FROM hudi_table_changes('t', 'what', 'earliest');
SELECT id, v FROM hudi_table_changes('nobody', 'latest_state', 'earliest');
SELECT id, v FROM hudi_query('t', 'snapshot') ORDER BY id;
SELECT id, v FROM hudi_query('t', 'read_optimized') ORDER BY id;
SELECT id, v FROM hudi_query('t', 'incremental', 'earliest') ORDER BY id;
