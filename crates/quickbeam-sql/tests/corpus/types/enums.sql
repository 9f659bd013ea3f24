# Chapter 8.7: enumerated types, and CREATE, ALTER and DROP TYPE
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')
CREATE TYPE mood AS ENUM ('a')
CREATE TYPE twice AS ENUM ('a', 'b', 'a')
SELECT 'sad'::mood, CAST('ok' AS mood), NULL::mood
CREATE TYPE none AS ENUM ()
SELECT 'angry'::mood
SELECT 'Sad'::mood
SELECT 'sad'::mood < 'ok'::mood, 'happy'::mood > 'ok', 'ok' = 'ok'::mood
SELECT 'sad'::mood = 'sad'::text
SELECT 'sad'::mood::text || '!', length('sad'::mood::text)
SELECT 1::mood
SELECT ('s' || 'ad')::mood
SELECT ('s' || 'ab')::mood
CREATE TABLE person (name text PRIMARY KEY, m mood DEFAULT 'ok')
INSERT INTO person VALUES ('Moe', 'happy'), ('Larry', 'sad'), ('Curly', 'ok'), ('Nemo', NULL)
INSERT INTO person (name) VALUES ('Def')
INSERT INTO person VALUES ('X', 'unknown')
INSERT INTO person SELECT 'Y', 'sad'::text
INSERT INTO person SELECT 'Y', 'sad'::text::mood
SELECT name, m FROM person ORDER BY m, name
SELECT name, m FROM person ORDER BY m DESC, name
SELECT name FROM person WHERE m > 'sad' ORDER BY name
SELECT name FROM person WHERE m IN ('sad', 'happy') ORDER BY name
SELECT name FROM person WHERE m = 'nosuch'
SELECT max(m), min(m), count(DISTINCT m) FROM person
SELECT m, count(*) FROM person GROUP BY m ORDER BY m
SELECT enum_first(NULL::mood), enum_last(NULL::mood), enum_range(NULL::mood)
SELECT enum_range('ok'::mood, NULL), enum_range(NULL, 'ok'::mood), enum_range('ok'::mood, 'ok'::mood)
SELECT enum_first(1)
CREATE INDEX person_m ON person (m)
SELECT name FROM person WHERE m = 'sad' ORDER BY name
SELECT name FROM person WHERE m >= 'ok' ORDER BY m, name
CREATE TABLE keyed (m mood PRIMARY KEY, n int)
INSERT INTO keyed VALUES ('happy', 3), ('sad', 1), ('ok', 2)
INSERT INTO keyed VALUES ('ok', 2)
SELECT * FROM keyed ORDER BY m
SELECT p.name, k.n FROM person p JOIN keyed k ON p.m = k.m ORDER BY k.n, p.name
UPDATE person SET m = 'happy' WHERE name = 'Larry'
SELECT m FROM person WHERE name = 'Larry'
ALTER TYPE mood ADD VALUE 'great'
ALTER TYPE mood ADD VALUE 'great'
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'great'
ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'
ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'
ALTER TYPE mood ADD VALUE 'x' AFTER 'nosuch'
SELECT enum_range(NULL::mood)
INSERT INTO person VALUES ('New', 'meh'), ('Newer', 'great')
SELECT name, m FROM person ORDER BY m, name
SELECT enumlabel, enumsortorder FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid WHERE typname = 'mood' ORDER BY enumsortorder
SELECT typname, typtype, typlen, typcategory FROM pg_type WHERE typname IN ('mood', '_mood') ORDER BY 1
SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'person'::regclass AND attname = 'm'
SELECT data_type, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'person' AND column_name = 'm'
SELECT pg_typeof('ok'::mood), 'mood'::regtype, pg_typeof(ARRAY['ok']::mood[])
SELECT ARRAY['ok', 'sad']::mood[], '{happy,meh}'::mood[]
SELECT '{happy,nosuch}'::mood[]
SELECT 'ok' = ANY ('{ok,sad}'::mood[]), m FROM keyed WHERE m = ANY (ARRAY['sad', 'ok']::mood[]) ORDER BY m
CREATE TABLE arrays (a mood[])
INSERT INTO arrays VALUES ('{sad,ok}'), (NULL), (ARRAY['happy']::mood[])
SELECT a, a[1] FROM arrays ORDER BY 2
SELECT unnest(a) FROM arrays ORDER BY 1
SELECT CASE WHEN n = 1 THEN m ELSE 'ok' END FROM keyed ORDER BY n
SELECT coalesce(NULL, m, 'sad') FROM keyed ORDER BY 1
SELECT m FROM keyed UNION SELECT 'great' ORDER BY 1
SELECT greatest('sad'::mood, 'great', 'ok'), least('ok'::mood, 'meh')
CREATE TYPE color AS ENUM ('red', 'ok')
SELECT 'ok'::color = 'ok'::mood
SELECT 'ok'::color::mood
SELECT 'ok'::color::text::mood
INSERT INTO keyed VALUES ('ok'::color, 1)
ALTER TYPE color RENAME VALUE 'red' TO 'rot'
SELECT enum_range(NULL::color)
ALTER TYPE color RENAME VALUE 'red' TO 'x'
ALTER TYPE color RENAME VALUE 'rot' TO 'ok'
ALTER TYPE color RENAME TO colour
SELECT 'rot'::colour
SELECT 'rot'::color
CREATE SCHEMA app
ALTER TYPE colour SET SCHEMA app
SELECT 'rot'::app.colour
CREATE TABLE app.t (c app.colour NOT NULL CHECK (c <> 'ok'))
INSERT INTO app.t VALUES ('ok')
INSERT INTO app.t VALUES ('rot')
SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'app.t'::regclass AND attname = 'c'
CREATE DOMAIN good AS mood CHECK (VALUE >= 'ok')
SELECT 'happy'::good
SELECT 'sad'::good
SELECT 'nosuch'::good
CREATE FUNCTION better(a mood) RETURNS mood LANGUAGE sql AS 'SELECT CASE WHEN a < ''ok'' THEN ''ok''::mood ELSE a END'
SELECT better('sad'), better('happy')
ALTER TABLE person ADD COLUMN t text DEFAULT 'ok'
ALTER TABLE person ALTER COLUMN t DROP DEFAULT, ALTER COLUMN t TYPE mood USING t::mood
SELECT name, t FROM person ORDER BY name LIMIT 2
ALTER TABLE person ALTER COLUMN t TYPE text
SELECT name, t FROM person ORDER BY name LIMIT 2
DROP TYPE mood
DROP TYPE nosuch
DROP TYPE IF EXISTS nosuch
DROP DOMAIN mood
ALTER DOMAIN mood SET NOT NULL
CREATE TABLE mood (a int)
BEGIN
CREATE TYPE temp_type AS ENUM ('a', 'b')
CREATE TABLE tt (x temp_type)
INSERT INTO tt VALUES ('b'), ('a')
SELECT * FROM tt ORDER BY x
ROLLBACK
SELECT 'a'::temp_type
SELECT m, row_number() OVER (ORDER BY m) FROM keyed ORDER BY m
WITH w AS (SELECT m FROM person) SELECT count(*) FROM w WHERE m = 'ok'
SELECT DISTINCT m FROM person ORDER BY m
SELECT string_agg(m::text, ',' ORDER BY m), array_agg(m ORDER BY m) FROM keyed
SELECT to_json(m) FROM keyed ORDER BY m
DROP SCHEMA app CASCADE
DROP TABLE person, keyed, arrays
DROP DOMAIN good
DROP FUNCTION better(mood)
DROP TYPE mood
SELECT 'ok'::mood
