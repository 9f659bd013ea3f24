# Chapter 5, 6 and 13: definitions, changes and transactions
CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int NOT NULL DEFAULT 5, s varchar(5) UNIQUE, c int CHECK (c > 0))
INSERT INTO a (s, c) VALUES ('x', 1), ('y', NULL)
INSERT INTO a (s) VALUES ⟨('x')¦('toolong')¦('abc  ')¦(NULL)⟩
INSERT INTO a (c) VALUES ⟨(0)¦('z')¦(1.6)¦(2147483648)¦(true)⟩
INSERT INTO a (n) VALUES ⟨(NULL)¦(DEFAULT)⟩
INSERT INTO a (id) VALUES (100)
INSERT INTO a (id) OVERRIDING SYSTEM VALUE VALUES (100) RETURNING id, n
INSERT INTO a DEFAULT VALUES RETURNING *
INSERT INTO a (s) VALUES ('x') ON CONFLICT ⟨DO NOTHING¦(s) DO UPDATE SET n = 99¦(s) DO UPDATE SET n = a.n + excluded.n WHERE a.n < 1000¦(c) DO NOTHING¦ON CONSTRAINT a_s_key DO NOTHING⟩ RETURNING n
INSERT INTO a (s, n) SELECT 'q' || g, g FROM generate_series(1, 3) g
INSERT INTO a VALUES (1)
INSERT INTO a (nosuch) VALUES (1)
INSERT INTO a (s, n) VALUES (1)
UPDATE a SET n = n + 1 WHERE s ⟨= 'x'¦LIKE 'q%'¦IS NULL¦= 'none'⟩ RETURNING s, n
UPDATE a SET (n, c) = ⟨(7, 8)¦(SELECT 9, 10)¦ROW(11, 12)⟩ WHERE s = 'x' RETURNING n, c
UPDATE a SET n = DEFAULT, c = 3 WHERE s = 'y' RETURNING n, c
UPDATE a SET ⟨n = NULL¦c = -1¦s = 'y'¦nosuch = 1¦id = 5⟩ WHERE s = 'x'
UPDATE a SET n = b.v FROM (VALUES ('x', 77)) b(s, v) WHERE a.s = b.s RETURNING a.n
DELETE FROM a USING (VALUES ('q1')) b(s) WHERE a.s = b.s RETURNING a.s
DELETE FROM a WHERE s = 'q2' RETURNING s
MERGE INTO a USING (VALUES ('x', 1), ('new', 2)) v(s, n) ON a.s = v.s WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT (s, n) VALUES (v.s, v.n)
SELECT s, n, c FROM a ORDER BY s NULLS LAST, n, c
CREATE TABLE p (id int PRIMARY KEY)
CREATE TABLE f (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY IMMEDIATE)
INSERT INTO p VALUES (1), (2)
INSERT INTO f VALUES (1, 1), (2, NULL)
INSERT INTO f VALUES (3, 9)
UPDATE p SET id = 10 WHERE id = 1
SELECT * FROM f ORDER BY id
DELETE FROM p WHERE id = 10
SELECT * FROM f ORDER BY id
CREATE TABLE gen (a int, b int GENERATED ALWAYS AS (a * 2) STORED)
INSERT INTO gen (a) VALUES (4)
SELECT * FROM gen
INSERT INTO gen VALUES (1, 2)
ALTER TABLE a ADD COLUMN ⟨z int DEFAULT 3¦z int¦IF NOT EXISTS z int¦y text NOT NULL¦w date DEFAULT current_date⟩
ALTER TABLE a ALTER COLUMN ⟨n TYPE bigint¦z SET DEFAULT 8¦z DROP DEFAULT¦z SET NOT NULL¦z DROP NOT NULL¦s TYPE text¦s TYPE int¦nosuch DROP DEFAULT⟩
ALTER TABLE a ⟨RENAME COLUMN z TO zz¦RENAME TO aa¦DROP COLUMN nosuch¦DROP COLUMN IF EXISTS nosuch⟩
ALTER TABLE aa ⟨RENAME TO a¦ADD CONSTRAINT ck CHECK (n < 10000)¦ADD CONSTRAINT ck CHECK (true)¦ADD UNIQUE (n, s)¦DROP CONSTRAINT ck¦DROP CONSTRAINT nosuch¦DROP COLUMN zz⟩
ALTER TABLE a ⟨ADD CONSTRAINT ck CHECK (n < 100000)¦DROP CONSTRAINT ck¦DROP CONSTRAINT IF EXISTS nosuch¦DROP COLUMN zz⟩
CREATE VIEW v AS SELECT s, n FROM a WHERE n > 0
SELECT count(*) > 0 FROM v
UPDATE v SET n = n + 1 WHERE s = 'x'
CREATE ⟨VIEW v AS SELECT 1¦TABLE a (x int)¦INDEX ON a (n)¦UNIQUE INDEX au ON a (id)¦INDEX ON a (lower(s))¦INDEX ON a (n) WHERE n > 5¦INDEX ON nosuch (x)¦INDEX ON a (nosuch)¦INDEX ai ON a (n) INCLUDE (s)¦TABLE x1 (a int, a int)¦TABLE x2 (a nosuch)¦TABLE x3 (a int DEFAULT 'x')¦TABLE x4 (a int PRIMARY KEY, b int PRIMARY KEY)¦TABLE x5 (LIKE p INCLUDING ALL)¦TABLE x6 AS SELECT 1 AS one, 'x' AS two¦TEMP TABLE x7 (a int)¦UNLOGGED TABLE x8 (a int)¦SCHEMA sc¦TABLE sc.t (a int)¦MATERIALIZED VIEW mv AS SELECT 1 AS m¦TABLE x9 (a int[], b jsonb, c interval, d timestamptz(3))¦TABLE x10 (a numeric(50,10), b bit(3), c inet, d int4range)¦TABLE x11 (a timestamp(0), b time(2), c interval day to second)¦TABLE x12 (a text COLLATE "C")⟩
INSERT INTO x11 VALUES ('2020-01-01 10:20:30.6', '10:20:30.126', '1 day 2:03:04.5678')
SELECT * FROM x11
INSERT INTO x10 VALUES ('12345678901234567890123456789012345678.0123456789', B'101', '10.0.0.1/8', '[1,5]')
SELECT * FROM x10
SELECT * FROM x6
DROP ⟨VIEW v¦VIEW nosuch¦VIEW IF EXISTS nosuch¦TABLE p¦TABLE p CASCADE¦TABLE f, gen¦INDEX nosuch¦TABLE nosuch¦SCHEMA sc¦SCHEMA sc CASCADE⟩
TRUNCATE a
SELECT count(*) FROM a
BEGIN
INSERT INTO a (s) VALUES ('tx')
SAVEPOINT sp
INSERT INTO a (s) VALUES ('sp')
ROLLBACK TO SAVEPOINT sp
RELEASE SAVEPOINT sp
SELECT s FROM a ORDER BY s
COMMIT
SELECT s FROM a ORDER BY s
BEGIN ISOLATION LEVEL ⟨SERIALIZABLE¦REPEATABLE READ¦READ COMMITTED¦READ UNCOMMITTED⟩
ROLLBACK
START TRANSACTION READ ONLY
INSERT INTO a (s) VALUES ('ro')
ROLLBACK
PREPARE q (int) AS SELECT $1 + 1
EXECUTE q(⟨4¦'5'¦NULL¦'x'⟩)
DEALLOCATE q
EXECUTE q(1)
SHOW ⟨transaction_isolation¦search_path¦client_encoding¦standard_conforming_strings¦server_version_num¦nosuch¦work_mem¦IntervalStyle¦extra_float_digits⟩
SET ⟨nosuch = 1¦search_path = public¦work_mem = '8MB'¦application_name = 'x'¦extra_float_digits = 0⟩
SELECT 0.1::float8 + 0.2, 1::float4 / 3
SET extra_float_digits = ⟨-5¦1¦3¦9⟩
SELECT 0.1::float8 + 0.2
COMMENT ON TABLE a IS 'hello'
SELECT obj_description('a'::regclass, 'pg_class')
