# Chapter 8.3, 8.4 and 4.1.2: character and binary types, string constants
:= s '' ¦ 'abc' ¦ 'abc  ' ¦ 'Größe' ¦ 'ab\c' ¦ 'it''s'
SELECT ⟨$s⟩, length(⟨$s⟩)
SELECT ⟨$s⟩::⟨text¦varchar¦varchar(2)¦char(2)¦char(6)¦bpchar¦name¦bytea⟩
SELECT length(⟨$s⟩::char(6)), octet_length(⟨$s⟩::char(6)), ⟨$s⟩::char(6) || '|'
SELECT 'a'::char(3) = 'a  '::⟨char(5)¦varchar¦text⟩
SELECT ⟨'a '¦'a'¦'b'⟩::char(2) ⟨<¦=¦>⟩ ⟨'a'¦'a  '⟩::char(3)
SELECT E'⟨a\nb¦\x41¦\101¦\u00e9¦\\¦\t¦\'¦\U0001F600⟩'
SELECT U&'⟨d\0061t\+000061¦\00e9¦a\\b⟩'
SELECT 'foo' 'bar'
SELECT $$dollar 'quoted'$$, $x$a $$ b$x$
SELECT B'⟨1010¦¦1⟩', X'⟨1F¦¦a⟩'
SELECT '\xDEADbeef'::bytea, 'abc\000'::bytea, '\\'::bytea
SELECT '⟨\x1¦\xzz¦a\1¦\x¦\x 12 34⟩'::bytea
SELECT '\x0102'::bytea ⟨||¦=¦<¦>⟩ '\x03'::bytea
SELECT 'a'::"char", 'abc'::"char", ''::"char", 65::"char", 'a'::"char"::int
SELECT 'abc'::name, length('abc'::name), 'abc'::name || 'x', 'abc'::name = 'abc'::text
SELECT repeat('x', 70)::name
SELECT 'abcdef'::varchar(3)::text, 'abcdef'::char(3)::varchar
SELECT 'a' < 'B', 'a' < 'b', 'Z' < 'a', '' < 'a', 'ä' < 'z'
SELECT ⟨'a'¦'B'¦'ä'⟩ ⟨<¦>⟩ ⟨'b'¦'A'⟩ COLLATE ⟨"C"¦"POSIX"¦"en-x-icu"¦"de-x-icu"¦"nosuch"⟩
SELECT 'a' COLLATE "C" < 'b' COLLATE "POSIX"
SELECT pg_typeof(⟨'a'¦'a'::name¦'a'::"char"¦'a'::char(2)¦'a'::varchar(3)¦1.5¦1¦NULL¦'{1}'::int[]¦now()¦current_date¦1::oid¦interval '1 day'⟩)
SELECT set_config('bytea_output', 'escape', false)
SELECT '\x0041ff5c'::bytea
SET bytea_output = 'hex'
SELECT '\x0041ff5c'::bytea
SELECT x FROM (VALUES ('b'), ('A'), ('a'), ('B'), ('ä'), ('_')) v(x) ORDER BY x COLLATE ⟨"C"¦"en-x-icu"¦"und-x-icu"⟩
