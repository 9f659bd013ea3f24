# Chapter 8.18: domain types, and CREATE, ALTER and DROP DOMAIN
CREATE DOMAIN posint AS integer CHECK (VALUE > 0)
CREATE DOMAIN nn AS text NOT NULL DEFAULT 'x'
CREATE DOMAIN small AS posint CONSTRAINT low CHECK (VALUE < 100) CONSTRAINT even CHECK (VALUE % 2 = 0)
CREATE DOMAIN price numeric(6,2) DEFAULT 1.5 CONSTRAINT positive CHECK (VALUE >= 0)
CREATE DOMAIN zip char(5) CHECK (VALUE ~ '^[0-9]+$')
CREATE DOMAIN posint AS text
CREATE DOMAIN d1 AS nosuch
CREATE DOMAIN d1 AS int CHECK (VALUE > 'x')
CREATE DOMAIN d1 AS int CHECK (a > 1)
CREATE DOMAIN d1 AS int DEFAULT 'x'
CREATE DOMAIN d1 AS int DEFAULT 1 DEFAULT 2
CREATE DOMAIN d1 AS int NULL NOT NULL
CREATE DOMAIN d1 AS int UNIQUE
CREATE DOMAIN d1 AS int PRIMARY KEY
CREATE DOMAIN d1 AS int REFERENCES t(a)
CREATE DOMAIN d1 AS int CONSTRAINT c CHECK (VALUE > 1) CONSTRAINT c CHECK (VALUE < 9)
CREATE DOMAIN d1 AS int CHECK (VALUE + 1)
CREATE DOMAIN d1 AS int CHECK (VALUE > (SELECT 1))
SELECT 5::posint, '7'::posint, NULL::posint
SELECT 0::posint
SELECT '-1'::posint
SELECT 'x'::posint
SELECT NULL::nn
SELECT 'a'::nn || 'b'
SELECT CAST(12 AS small) + 1
SELECT 13::small
SELECT 200::small
SELECT (-2)::small
SELECT 1.239::price, '12345.678'::price
SELECT 12.3::price * 2
SELECT 'ab'::zip
SELECT '12'::zip, length('12'::zip)
CREATE TABLE dt (id posint PRIMARY KEY, n nn, p price, s small, u int)
INSERT INTO dt (id) VALUES (1)
SELECT * FROM dt
INSERT INTO dt VALUES (0, 'a', 1, 2)
INSERT INTO dt VALUES (2, NULL, 1, 2)
INSERT INTO dt VALUES (2, 'b', -1, 2)
INSERT INTO dt VALUES (2, 'b', 2.345, 3)
INSERT INTO dt VALUES (2, 'b', 2.345, 4)
INSERT INTO dt SELECT 3, 'c', 1, 8
INSERT INTO dt SELECT 4, 'c', 1, 101
UPDATE dt SET id = id - 1 WHERE id = 1
UPDATE dt SET n = NULL
UPDATE dt SET n = DEFAULT, p = DEFAULT WHERE id = 2
UPDATE dt SET s = NULL
INSERT INTO dt VALUES (2, 'z', 1, 2) ON CONFLICT (id) DO UPDATE SET s = 1
SELECT * FROM dt ORDER BY id
SELECT id + 1, n || 'q', p * 2, max(s) FROM dt GROUP BY id, n, p ORDER BY id
ALTER DOMAIN posint ADD CONSTRAINT big CHECK (VALUE > 1)
ALTER DOMAIN posint ADD CONSTRAINT big CHECK (VALUE > 1) NOT VALID
ALTER DOMAIN posint ADD CONSTRAINT big CHECK (VALUE > 1)
ALTER DOMAIN posint ADD CHECK (VALUE < 1000000)
ALTER DOMAIN posint VALIDATE CONSTRAINT big
DELETE FROM dt WHERE id = 1
ALTER DOMAIN posint VALIDATE CONSTRAINT big
ALTER DOMAIN posint VALIDATE CONSTRAINT nosuch
SELECT 1::posint
SELECT conname, convalidated, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_type t ON t.oid = contypid WHERE typname = 'posint' ORDER BY 1
ALTER DOMAIN posint RENAME CONSTRAINT big TO bigger
ALTER DOMAIN posint DROP CONSTRAINT big
ALTER DOMAIN posint DROP CONSTRAINT IF EXISTS big
ALTER DOMAIN posint DROP CONSTRAINT bigger
SELECT 1::posint
INSERT INTO dt (id, n, s) VALUES (9, 'q', NULL)
ALTER DOMAIN small SET NOT NULL
DELETE FROM dt WHERE s IS NULL
ALTER DOMAIN small SET NOT NULL
INSERT INTO dt (id) VALUES (10)
ALTER DOMAIN small SET DEFAULT 10
INSERT INTO dt (id) VALUES (10)
SELECT * FROM dt WHERE id = 10
ALTER DOMAIN small DROP NOT NULL
ALTER DOMAIN small DROP DEFAULT
INSERT INTO dt (id) VALUES (11)
SELECT s FROM dt WHERE id = 11
ALTER DOMAIN small RENAME TO little
SELECT 3::small
SELECT 3::little
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE attrelid = 'dt'::regclass AND attnum > 0 ORDER BY attnum
SELECT column_name, data_type, domain_schema, domain_name, udt_name FROM information_schema.columns WHERE table_name = 'dt' ORDER BY ordinal_position
SELECT domain_schema, domain_name, data_type, numeric_precision, numeric_scale, character_maximum_length, udt_name FROM information_schema.domains WHERE domain_schema = 'public' ORDER BY 2
SELECT 'posint'::regtype, 'public.posint'::regtype::oid::regtype
ALTER TABLE dt ADD COLUMN extra posint DEFAULT 0
ALTER TABLE dt ADD COLUMN extra posint
ALTER TABLE dt ADD COLUMN nothing nn
ALTER TABLE dt ADD COLUMN priced price
SELECT nothing, priced, extra FROM dt WHERE id = 11
ALTER TABLE dt ALTER COLUMN u TYPE posint USING -id
ALTER TABLE dt ALTER COLUMN u TYPE posint USING id
INSERT INTO dt (id, u) VALUES (20, -5)
ALTER TABLE dt ALTER COLUMN u TYPE int
INSERT INTO dt (id, u) VALUES (20, -5)
DROP DOMAIN posint
DROP DOMAIN price
DROP DOMAIN nosuch
DROP DOMAIN IF EXISTS nosuch
DROP DOMAIN int
ALTER DOMAIN int SET NOT NULL
ALTER DOMAIN nosuch SET NOT NULL
CREATE TABLE posint (a int)
CREATE DOMAIN dt AS int
CREATE SCHEMA app
CREATE DOMAIN app.code AS text CHECK (length(VALUE) = 3)
SELECT 'ab'::app.code
SELECT 'ab'::code
CREATE TABLE app.t (c app.code)
INSERT INTO app.t VALUES ('ab')
INSERT INTO app.t VALUES ('abc')
SET search_path = app, public
SELECT 'ab'::code
RESET search_path
ALTER DOMAIN app.code SET SCHEMA public
SELECT 'ab'::code
DROP SCHEMA app
DROP DOMAIN price CASCADE
SELECT column_name FROM information_schema.columns WHERE table_name = 'dt' ORDER BY ordinal_position
CREATE DOMAIN arr AS int[] CHECK (array_length(VALUE, 1) = 2)
SELECT '{1,2}'::arr, ARRAY[1,2]::arr
SELECT ARRAY[1]::arr
CREATE DOMAIN rel AS date CHECK (VALUE > '2020-01-01')
SELECT '2019-01-01'::rel
SELECT CASE WHEN false THEN (-1)::posint ELSE 1 END
DROP DOMAIN code, arr
