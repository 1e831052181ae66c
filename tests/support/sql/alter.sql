-- case: alter without schema on read
CREATE TABLE t (id INT, name STRING, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id');
INSERT INTO t VALUES (1, 'a', 5);
ALTER TABLE t ADD COLUMNS (remark STRING);
SELECT id, name, n, remark FROM t;
INSERT INTO t VALUES (2, 'b', 6, 'r');
SELECT id, name, n, remark FROM t ORDER BY id;
ALTER TABLE t ADD COLUMNS (x INT COMMENT 'an x', y DECIMAL(5,1));
DESCRIBE t;
ALTER TABLE t CHANGE COLUMN n n BIGINT;
-- differs: Hudi changes types only where hoodie.schema.on.read.enable is set; here it need not be.
DESCRIBE t n;
-- differs: Hudi changes types only where hoodie.schema.on.read.enable is set; here it need not be.
-- expect: [{"info_name": "col_name", "info_value": "n"}, {"info_name": "data_type", "info_value": "bigint"}, {"info_name": "comment", "info_value": "NULL"}]
SELECT id, n, x, y FROM t ORDER BY id;
-- differs: Hudi changes types only where hoodie.schema.on.read.enable is set; here it need not be.
-- expect: [{"id": 1, "n": 5, "x": null, "y": null}, {"id": 2, "n": 6, "x": null, "y": null}]
ALTER TABLE t ADD COLUMNS (name STRING);
