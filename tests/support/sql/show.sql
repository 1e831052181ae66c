-- case: describe of all kinds
CREATE TABLE t (id INT COMMENT 'the key', name STRING, dt STRING) USING hudi PARTITIONED BY (dt) COMMENT 'a table' TBLPROPERTIES (primaryKey = 'id');
DESC t;
DESCRIBE TABLE t;
DESCRIBE listed.t;
DESC t name;
DESCRIBE t nope;
DESCRIBE nobody;
DESCRIBE EXTENDED t id;
DESCRIBE QUERY SELECT id, name FROM t;
DESC SELECT count(*) AS n FROM t;
INSERT INTO t VALUES (1, 'a', 'x');
DESCRIBE t;

-- case: show of all kinds
CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', type = 'mor');
CREATE TABLE unpartitioned (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
SHOW COLUMNS IN t;
SHOW COLUMNS FROM t IN listed;
SHOW COLUMNS IN listed.t;
SHOW PARTITIONS t;
INSERT INTO t VALUES (1, 'a', 'y'), (2, 'b', 'x');
SHOW PARTITIONS t;
SHOW PARTITIONS listed.t PARTITION (dt = 'x');
SHOW PARTITIONS unpartitioned;
SHOW PARTITIONS nobody;
SHOW TBLPROPERTIES t ('type');
SHOW TBLPROPERTIES t ('nope');
-- differs: Hudi writes the name with catalog and database.
-- expect: [{"key": "nope", "value": "Table t does not have property: nope"}]
SHOW TABLES;
SHOW TABLES LIKE 't*';
SHOW TABLES IN listed;
SHOW CREATE TABLE nobody;
