CREATE NAMESPACE IF NOT EXISTS {catalog}.warm;
CREATE TABLE {catalog}.warm.orders (id BIGINT, name STRING, total DECIMAL(12, 2), at TIMESTAMP_NTZ, _offset BIGINT)
USING iceberg
TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read');
INSERT INTO {catalog}.warm.orders
SELECT id, concat('n', id), CAST(id AS DECIMAL(12, 2)) / 7, TIMESTAMP_NTZ '2026-01-01 00:00:00', id
FROM range(5000) ORDER BY id;
CREATE TEMPORARY VIEW changes AS
SELECT * FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY _offset DESC) AS place
  FROM (SELECT id * 3 AS id, name, total, at, _offset + 9000 AS _offset FROM {catalog}.warm.orders WHERE id < 1000)
) WHERE place = 1;
CACHE TABLE changes;
ALTER TABLE {catalog}.warm.orders CREATE BRANCH work;
MERGE INTO {catalog}.warm.orders.branch_work AS t
USING (SELECT /*+ BROADCAST(changes) */ id, _offset FROM changes) AS s
ON t.id = s.id AND t.id BETWEEN 0 AND 3000
WHEN MATCHED AND struct(s._offset) >= struct(t._offset) THEN DELETE;
INSERT INTO {catalog}.warm.orders.branch_work SELECT id, name, total, at, _offset FROM changes;
CALL {catalog}.system.fast_forward('warm.orders', 'main', 'work');
DELETE FROM {catalog}.warm.orders WHERE id = 7;
ALTER TABLE {catalog}.warm.orders ADD COLUMN more INT;
SELECT count(*), min(id), max(total), bit_xor(xxhash64(id, name)) FROM {catalog}.warm.orders;
SELECT * FROM {catalog}.warm.orders WHERE id IN (1, 2, 3) LIMIT 5;
CALL {catalog}.system.rewrite_data_files(table => 'warm.orders', options => map('rewrite-all', 'true'));
CALL {catalog}.system.expire_snapshots(table => 'warm.orders', older_than => TIMESTAMP '2100-01-01 00:00:00')
