# Chapter 8.6 to 8.21: boolean, enumerated, network, bit, text search, UUID, XML, JSON, composite, range and object identifier types
SELECT '⟨t¦true¦ yes ¦on¦1¦f¦no¦off¦0¦tr¦of¦o¦maybe¦2¦¦TRUE¦n⟩'::boolean
SELECT ⟨true¦false¦NULL⟩ ⟨AND¦OR¦=¦<¦IS DISTINCT FROM⟩ ⟨true¦false¦NULL::boolean⟩
SELECT ⟨1¦0¦2¦-1⟩::boolean, true::int
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')
SELECT '⟨sad¦ok¦happy¦angry¦Sad⟩'::mood
CREATE TABLE person (name text, m mood)
INSERT INTO person VALUES ('Moe', 'happy'), ('Larry', 'sad'), ('Curly', 'ok'), ('Nemo', NULL)
SELECT * FROM person ORDER BY m
SELECT name FROM person WHERE m ⟨>¦=¦<¦<=¦<>⟩ 'ok'
SELECT max(m), min(m), count(DISTINCT m) FROM person
SELECT enum_first(null::mood), enum_last(null::mood), enum_range(null::mood), enum_range('ok'::mood, null)
SELECT m::text || '!' FROM person ORDER BY name
INSERT INTO person VALUES ('X', 'unknown')
ALTER TYPE mood ADD VALUE ⟨'great'¦'meh' BEFORE 'ok'¦'fine' AFTER 'ok'¦'great'¦IF NOT EXISTS 'great'⟩
SELECT enum_range(null::mood)
SELECT 'great'::mood > 'happy'::mood, 'meh'::mood < 'ok'::mood, ARRAY['ok','sad']::mood[]
ALTER TYPE mood RENAME VALUE 'meh' TO 'so-so'
SELECT enum_range(null::mood), pg_typeof('ok'::mood)
SELECT m, count(*) FROM person GROUP BY m ORDER BY m
CREATE INDEX person_m ON person (m)
SELECT name FROM person WHERE m = 'sad'
UPDATE person SET m = 'fine' WHERE name = 'Moe'
SELECT enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid WHERE typname = 'mood' ORDER BY enumsortorder
DROP TYPE mood
CREATE DOMAIN posint AS integer CHECK (VALUE > 0)
CREATE DOMAIN nn AS text NOT NULL DEFAULT 'x'
SELECT ⟨5¦0¦'7'¦'x'¦NULL⟩::posint
SELECT ⟨'a'¦NULL⟩::nn
CREATE TABLE dom (a posint, b nn)
INSERT INTO dom VALUES ⟨(1, 'a')¦(-1, 'a')¦(NULL, 'b')¦(2, NULL)⟩
INSERT INTO dom (a) VALUES (9)
SELECT a + 1, b || '!', pg_typeof(a) FROM dom ORDER BY a
UPDATE dom SET a = a - 5
DROP DOMAIN posint
CREATE TYPE pair AS (x integer, y text)
SELECT ⟨ROW(1, 'a')¦'(2,b)'¦'(3,)'¦'(4)'¦'(5,"a b")'¦'(6,"a""b")'⟩::pair
SELECT (ROW(1, 'a')::pair).x, (ROW(1, 'a')::pair).y, (ROW(1, 'a')::pair).*
CREATE TABLE pairs (id int, p pair)
INSERT INTO pairs VALUES (1, ROW(10, 'ten')), (2, '(20,twenty)'), (3, NULL)
SELECT (p).x, (p).y FROM pairs ORDER BY id
SELECT p FROM pairs ORDER BY p
SELECT pairs FROM pairs ORDER BY id
SELECT id FROM pairs WHERE p = ROW(10, 'ten')::pair
UPDATE pairs SET p.x = 11 WHERE id = 1
SELECT ⟨ROW(1,2)¦ROW(1,'a',NULL)¦ROW()¦ROW('x y','"')¦(1,2)⟩
SELECT ROW(1,2) ⟨=¦<¦>¦<>¦IS DISTINCT FROM⟩ ROW(⟨1,2¦1,3¦0,9⟩)
SELECT ROW(1,NULL) IS ⟨NULL¦NOT NULL⟩, ROW(NULL,NULL) IS ⟨NULL¦NOT NULL⟩
:= inet '192.168.1.5' ¦ '192.168.1.5/24' ¦ '10.0.0.0/8' ¦ '::1' ¦ '2001:4f8:3:ba::/64' ¦ '192.168' ¦ 'x' ¦ '::ffff:1.2.3.0/120'
SELECT ⟨$inet⟩::inet
SELECT ⟨$inet⟩::cidr
SELECT ⟨host¦text¦abbrev¦family¦masklen¦netmask¦hostmask¦network¦broadcast⟩(⟨$inet⟩::inet)
SELECT inet '192.168.1.5/24' ⟨<<¦<<=¦>>¦>>=¦&&¦=¦<¦>¦<>⟩ inet ⟨'192.168.1/24'¦'192.168.1.5'¦'192.168.0/16'⟩
SELECT inet '192.168.1.6' ⟨+ 25¦- 36¦- inet '192.168.1.1'¦& inet '0.0.0.255'¦| inet '0.0.0.255'⟩, ~ inet '192.168.1.6'
SELECT set_masklen(inet '192.168.1.5/24', 16), inet_merge(inet '192.168.1.5/24', inet '192.168.2.5/24'), inet_same_family(inet '1.1.1.1', inet '::1')
SELECT ⟨'08:00:2b:01:02:03'¦'08-00-2b-01-02-03'¦'08002b:010203'¦'0800.2b01.0203'¦'08002b010203'¦'x'⟩::⟨macaddr¦macaddr8⟩
SELECT trunc('08:00:2b:01:02:03'::macaddr), macaddr '08:00:2b:01:02:03' < macaddr '08:00:2b:01:02:04'
SELECT B'101'::⟨bit(3)¦bit(5)¦bit(2)¦varbit¦varbit(2)¦int¦text⟩
SELECT B'1011' ⟨&¦|¦#¦||¦=¦<⟩ B'0110'
SELECT ⟨~ B'101'¦B'101' << 1¦B'101' >> 1¦length(B'101')¦bit_count(B'101')¦get_bit(B'101', 0)¦set_bit(B'101', 1, 1)¦44::bit(10)¦44::bit(3)¦cast(-44 as bit(12))¦'1110'::bit(4)::integer¦substring(B'110010' from 2 for 3)¦overlay(B'01010101' placing B'111' from 2)¦position(B'11' in B'0110')¦octet_length(B'10')⟩
SELECT '⟨a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11¦A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11¦{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}¦a0eebc999c0b4ef8bb6d6bb9bd380a11¦a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11¦xyz¦⟩'::uuid
SELECT '⟨1¦"x"¦null¦[1, 2,  3]¦{"b":1, "a": 2, "b": 3}¦{"a":¦¦tru¦[1,]¦1.50¦1e2¦"\u00e9"¦"\u0000"¦ {} ¦{"a":{"b":[1,{"c":null}]}}⟩'::⟨json¦jsonb⟩
SELECT '[1.0, 1.10, 1e5, -0, 12345678901234567890123]'::jsonb
:= rng '[1,5)' ¦ '[1,5]' ¦ '(1,5)' ¦ 'empty' ¦ '(,5)' ¦ '[3,)' ¦ '(,)' ¦ '[5,1]' ¦ '[1,1)' ¦ 'x'
SELECT ⟨$rng⟩::⟨int4range¦int8range¦numrange⟩
SELECT ⟨'[2020-01-01,2020-02-01)'¦'[2020-01-01,2020-02-01]'¦'(2020-01-01,)'⟩::⟨daterange¦tsrange⟩
SELECT int4range '[1,10)' ⟨=¦<¦@>¦<@¦&&¦<<¦>>¦&<¦&>¦-|-¦+¦*¦-⟩ int4range ⟨'[5,15)'¦'[10,20)'¦'[3,4]'¦'empty'⟩
SELECT ⟨lower¦upper¦isempty¦lower_inc¦upper_inc¦lower_inf¦upper_inf⟩(⟨$rng⟩::int4range)
SELECT int4range(1,5), int4range(1,5,'[]'), numrange(1,5,'()'), int4range(NULL,5), int8range(1,1)
SELECT int4range '[1,10)' @> ⟨3¦10¦NULL⟩, 5 <@ int4range '[1,10)', range_merge(int4range '[1,2)', int4range '[5,6)')
SELECT ⟨'{[1,5), [7,9)}'¦'{}'¦'{[1,5),[3,9)}'¦'{[1,2),[2,3)}'⟩::⟨int4multirange¦nummultirange⟩
SELECT int4multirange '{[1,3),[5,9)}' ⟨@>¦&&¦+¦-¦*¦=¦<<⟩ int4multirange ⟨'{[2,6)}'¦'{}'⟩
SELECT int4multirange '{[1,3),[5,9)}' @> ⟨2¦4⟩, unnest(int4multirange '{[1,3),[5,9)}'), range_merge(int4multirange '{[1,3),[5,9)}')
SELECT lower(int4multirange '{[1,3),[5,9)}'), multirange(int4range '[1,5)'), range_agg(r), range_intersect_agg(r) FROM (VALUES (int4range '[1,3)'), ('[2,5)')) v(r)
CREATE TABLE res (id int, during tsrange)
INSERT INTO res VALUES (1, '[2010-01-01 14:30, 2010-01-01 15:30)'), (2, NULL), (3, 'empty')
SELECT id, during, lower(during), upper(during) - lower(during) FROM res ORDER BY during
CREATE TABLE k (id int PRIMARY KEY, v text)
SELECT 'k'::regclass, 'k'::regclass::oid = (SELECT oid FROM pg_class WHERE relname = 'k'), 'nosuch'::regclass
SELECT ⟨'k'¦'public.k'¦'pg_class'¦'pg_catalog.pg_type'⟩::regclass
SELECT ⟨'integer'¦'int4'¦'text'¦'int[]'¦'varchar(3)'¦'nosuch'¦'timestamptz'¦'double precision'⟩::regtype
SELECT ⟨'pg_catalog'¦'public'¦'nosuch'⟩::regnamespace, 'now'::regproc, 'abs(int)'::regprocedure
SELECT 23::oid, 23::regtype, '23'::regtype, 23::oid + 1, 23::oid = 23, -1::oid, '4294967295'::oid, 'x'::oid
SELECT 4294967296::oid
SELECT 1259::regclass, 0::regclass, 99999999::regclass, 'k'::regclass::text, 'pg_class'::regclass::int
SELECT '1 2 3'::⟨int2vector¦oidvector⟩, ('4 5 6'::int2vector)[0]
SELECT oid::regclass FROM pg_class WHERE relname ⟨= 'k'¦= 'k_pkey'¦= 'pg_class'⟩
SELECT 'fat cats ate'::tsvector, 'fat & (rat | cat)'::tsquery, 'fat cats'::tsvector @@ 'cats'::tsquery
SELECT '(1,2)'::point, '((0,0),(1,1))'::box, '<(0,0),5>'::circle
SELECT '<a>x</a>'::xml
SELECT '16/B374D848'::pg_lsn
SELECT ⟨1::int2¦1::int8¦1.5¦1.5::float4¦'a'::text¦'a'::varchar(5)¦true¦'2020-01-01'::date¦'1 day'::interval¦'{"a":1}'::jsonb¦'\x01'::bytea¦ARRAY[1,2]⟩::⟨text¦int¦numeric¦boolean¦date¦json¦float8¦char(3)⟩
