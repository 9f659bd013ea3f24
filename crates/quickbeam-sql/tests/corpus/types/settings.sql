# Chapters 8.5.2, 8.5.3 and 20.11: settings of the texts of values
CREATE TABLE st (id int PRIMARY KEY, ts timestamp, tz timestamptz, d date, iv interval, tt timetz, r tstzrange, a timestamptz[])
:= zone UTC ¦ Europe/Berlin ¦ America/New_York ¦ Asia/Kolkata ¦ america/sao_paulo ¦ 2 ¦ -3.5 ¦ +02:00 ¦ FOO+3 ¦ <+02>-02 ¦ EST5EDT ¦ gmt ¦ 0 ¦ nowhere ¦ PST ¦ z ¦ zulu ¦ 170 ¦ Etc/GMT+5 ¦ EST5EDT,M3.2.0,M11.1.0
SET TimeZone = '⟨$zone⟩'
SHOW TimeZone
SET TIME ZONE ⟨LOCAL¦DEFAULT¦'Europe/Paris'¦-7¦INTERVAL '-5:30' HOUR TO MINUTE¦INTERVAL '+2' HOUR¦INTERVAL '1 month'⟩
SHOW TIME ZONE
:= dst DateStyle ¦ datestyle
SET ⟨$dst⟩ = '⟨german¦iso,dmy¦sql¦postgres,euro¦iso, sql¦mdy,dmy¦foo¦german,ymd¦us¦default¦default,german¦ISO,MDY⟩'
SHOW DateStyle
SET DateStyle = iso, dmy
SHOW DateStyle
SET IntervalStyle = '⟨foo¦ISO_8601¦Postgres⟩'
SHOW IntervalStyle
SET extra_float_digits = ⟨-16¦4¦0¦3¦-2⟩
SHOW extra_float_digits
RESET ALL
SHOW TimeZone
SHOW DateStyle
SET TimeZone = 'Europe/Berlin'
INSERT INTO st VALUES (1, '2020-07-01 12:00', '2020-07-01 12:00', '2020-07-01', '1 year 2 mons -3 days 04:05:06', '10:00+02', '[2020-01-01,2020-07-01)', '{2020-01-01,"2020-07-01 10:00+00"}')
INSERT INTO st VALUES (2, '1800-01-01', '1800-01-01', '0044-03-15 BC', '-1 day', '10:00:00.5-03', 'empty', '{}')
INSERT INTO st SELECT 3, '2020-10-25 01:00'::timestamptz, '2020-10-25 01:00'::date, '2020-10-25 23:30+00'::timestamptz, '0', '2020-10-25 01:00'::timestamptz, '(,)', ARRAY['2020-10-25 02:30'::timestamptz]
SELECT * FROM st ORDER BY id
SELECT ts::text, tz::text, d::text, iv::text, tt::text, r::text, a::text FROM st ORDER BY id
SELECT ts::timestamptz, tz::timestamp, tz::date, tz::time, tz::timetz, d::timestamptz FROM st ORDER BY id
SELECT tz = ts, tz = d, tz > d, tz::timestamp = ts FROM st ORDER BY id
SELECT '⟨2020-03-29 02:30¦2020-10-25 02:30¦2020-03-29 03:00¦2020-10-25 03:00¦1945-05-24 02:30¦1893-04-01 00:00¦2020-07-01 12:00 America/New_York¦infinity¦294246-12-31 23:59:59¦4713-01-01 BC¦2020-07-01¦20200701T120000⟩'::timestamptz
SELECT '2020-⟨03-28¦10-24¦06-01⟩ 12:00'::timestamptz ⟨+¦-⟩ interval '⟨1 day¦24 hours¦1 month¦1 month 1 day 1 hour¦-1 year¦1 week⟩'
SELECT interval '1 day' + '2020-03-28 12:00'::timestamptz, '2020-03-30'::timestamptz - '2020-03-28'::timestamptz
SELECT date_trunc('⟨microseconds¦second¦minute¦hour¦day¦week¦month¦quarter¦year¦decade¦century⟩', '⟨2020-07-01 00:30+00¦2020-10-25 00:30+00¦2020-10-25 01:30+00¦2020-03-29 02:15+00⟩'::timestamptz)
SELECT date_trunc('⟨hour¦day¦month⟩', '2020-07-01 00:30+00'::timestamptz, '⟨UTC¦America/New_York⟩')
SELECT extract(⟨hour¦day¦timezone¦timezone_hour¦timezone_minute¦epoch¦julian¦dow¦doy¦week¦year¦isoyear¦milliseconds⟩ FROM '⟨2020-06-30 22:30+00¦1800-07-01 00:30+00⟩'::timestamptz)
SELECT date_part('⟨hour¦timezone¦epoch⟩', '2020-06-30 22:30+00'::timestamptz)
SELECT to_char('⟨2020-07-01 00:30+00¦1800-07-01 00:30+00¦2020-01-01 00:30+00⟩'::timestamptz, '⟨YYYY-MM-DD HH24:MI:SS¦TZ tz¦OF¦TZH:TZM¦Day DD Mon¦J SSSS⟩')
SELECT to_char('2020-07-01'::timestamp, 'TZ OF TZH TZM'), to_char('2020-07-01'::date, 'YYYY TZ')
SELECT to_timestamp('2020-07-01 00:30', 'YYYY-MM-DD HH24:MI'), to_timestamp(0), make_timestamptz(2020, 7, 1, 0, 0, 0), make_timestamptz(2020, 7, 1, 0, 0, 0, 'America/New_York')
SELECT age('⟨2020-07-01¦2020-03-30⟩'::timestamptz, '⟨2020-01-01¦2020-03-28⟩'::timestamptz)
SELECT generate_series('2020-03-28 12:00'::timestamptz, '2020-03-31 12:00', '⟨1 day¦12 hours¦24 hours⟩')
SELECT '2020-07-01 12:00'::⟨timestamp¦timestamptz⟩ AT TIME ZONE '⟨UTC¦America/New_York¦+05¦CEST¦EST5EDT⟩'
SELECT to_json(tz), to_jsonb(ts), to_json(d), to_json(a), to_json(r), to_json(iv) FROM st ORDER BY id
SELECT json_agg(tz ORDER BY id), json_object_agg(tz, d ORDER BY id) FROM st
SELECT json_build_object(tz, ts), json_build_array(tz, a), row_to_json(x) FROM (SELECT * FROM st WHERE id = 1) x
SELECT concat(tz, '|', d), concat_ws('/', tz, ts), format('%s %L', tz, d), array_to_string(a, ';'), tz || '!', quote_literal(tz) FROM st ORDER BY id
SELECT string_agg(tz::text, ',' ORDER BY id), count(DISTINCT tz::date) FROM st
SELECT tz::date, count(*) FROM st GROUP BY tz::date ORDER BY 1
SELECT id FROM st WHERE tz >= '2020-07-01' AND tz < '2020-07-02' ORDER BY id
SELECT id FROM st WHERE tz::date = '2020-07-01' ORDER BY id
SELECT now()::date = current_date, now()::timestamp = localtimestamp, now()::time = localtime, pg_typeof(current_time), pg_typeof(current_time(2))
SELECT 'today'::timestamptz = date_trunc('day', now()), 'today'::date::timestamptz = date_trunc('day', now())
SELECT '[2020-01-01,2020-07-01)'::tstzrange, '{[2020-01-01,2020-07-01)}'::tstzmultirange, tstzrange('2020-01-01', '2020-07-01')
SET LOCAL TimeZone = 'Asia/Tokyo'
SELECT '2020-01-01'::timestamptz
BEGIN
SET LOCAL TimeZone = 'Asia/Tokyo'
SELECT '2020-01-01'::timestamptz
SET LOCAL DateStyle = 'sql'
SELECT '2020-01-01'::timestamptz, tz FROM st WHERE id = 1
ROLLBACK
SELECT '2020-01-01'::timestamptz
SELECT set_config('TimeZone', 'America/New_York', false)
SELECT '2020-01-01'::timestamptz, current_setting('TIMEZONE')
PREPARE p AS SELECT tz, tz::text, $1::timestamptz FROM st WHERE id = 1
EXECUTE p('2020-01-01')
SET TimeZone = 'Europe/Berlin'
EXECUTE p('2020-01-01')
SET DateStyle = 'sql, dmy'
EXECUTE p('01/02/2020')
:= ds iso,mdy ¦ iso,dmy ¦ iso,ymd ¦ sql,mdy ¦ sql,dmy ¦ sql,ymd ¦ postgres,mdy ¦ postgres,dmy ¦ postgres,ymd ¦ german,mdy ¦ german,dmy ¦ german,ymd
SET DateStyle = 'iso, mdy'
SELECT '⟨1/2/2003¦13/1/2003¦1.2.2003¦1/2/03¦1 2 2003¦8 Jan 99¦99-Jan-08¦Jan-08-99¦2003/1/2¦20030102¦030102⟩'::date
SET DateStyle = 'sql, dmy'
SELECT * FROM st ORDER BY id
SELECT ts::text, tz::text, d::text, r::text, a::text, to_json(tz), concat(d) FROM st ORDER BY id
SELECT '⟨1/2/2003¦13/1/2003¦1/13/2003¦1.2.2003¦1/2/03¦1 2 2003¦8 Jan 99¦99-Jan-08¦Jan-08-99¦2003/1/2¦20030102¦030102⟩'::date
SET DateStyle = 'sql, mdy'
SELECT * FROM st ORDER BY id
SET DateStyle = 'german'
SELECT * FROM st ORDER BY id
SELECT '⟨1.2.2003¦01.02.2003 10:00¦2003-02-01⟩'::timestamptz
SET DateStyle = 'postgres, mdy'
SELECT * FROM st ORDER BY id
SELECT '12345-07-01 1:2:3'::timestamp, '2020-07-01 12:00:00.123'::timestamptz
SET DateStyle = 'postgres, dmy'
SELECT * FROM st ORDER BY id
SET DateStyle = 'iso, ymd'
SELECT '⟨1/2/2003¦13/1/2¦03.02.01¦1/2/03¦1-2-03¦8 Jan 99¦99-Jan-08¦Jan-08-99¦2003/1/2¦20030102¦030102⟩'::date
RESET DateStyle
SET TimeZone = '⟨Asia/Kolkata¦America/Sao_Paulo¦FOO+3¦+02:00¦2¦UTC⟩'
SET DateStyle = 'sql'
SELECT tz FROM st ORDER BY id
RESET DateStyle
:= ii 1 year 2 mons 3 days 4:05:06.789 ¦ -1 year -2 mons 3 days -4:05:06 ¦ 0 ¦ 3 days ¦ -1 day ¦ 1 mon -1 day ¦ 4:05:06 ¦ -4:05:06.5 ¦ 1 year 2 mons ¦ -1 year 2 mons ¦ 1 day -0.5 sec ¦ 14 mons 3 days -1 sec ¦ -3 days -1 sec ¦ 1 us ¦ 100000 hours ¦ -1-2 3 4:05:06 ¦ -1-2 +3 4:05:06 ¦ -1 1:00:00 ¦ 1-2 3 4:05:06
SELECT '⟨$ii⟩'::interval
SET IntervalStyle = 'sql_standard'
SELECT '⟨$ii⟩'::interval, '⟨$ii⟩'::interval::text
SET IntervalStyle = 'postgres_verbose'
SELECT '⟨$ii⟩'::interval
SET IntervalStyle = 'iso_8601'
SELECT '⟨$ii⟩'::interval, to_json('1 day'::interval), concat('1 day'::interval)
RESET IntervalStyle
SET extra_float_digits = 0
SELECT 0.1::float8, 1e20::float8, (1.0/3)::float8, 0.1::float4, (1.0/3)::float4, 123456789::float4, 1e-7::float8, 'NaN'::float8, '-Infinity'::float4, 0::float8, '-0'::float8, 100::float8, 123456789012345678::float8
SET extra_float_digits = -3
SELECT (1.0/3)::float8, (1.0/3)::float4, 1e300::float8, (2.0/3)::float8::text, array[(1.0/3)::float8], to_json((1.0/3)::float8)
SET extra_float_digits = -15
SELECT (1.0/3)::float8, (1.0/3)::float4
RESET extra_float_digits
SET bytea_output = 'escape'
SELECT '\x00015c41ff27'::bytea, '\x00015c41ff'::bytea::text, array['\x005c'::bytea]
RESET bytea_output
SET TimeZone = 'Europe/Berlin'
CREATE INDEX ON st ((tz::⟨date¦text¦timestamp⟩))
CREATE INDEX ON st ((date_trunc('day', tz)))
CREATE INDEX ON st ((extract(hour FROM tz)))
CREATE INDEX ON st ((tz + interval '1 day'))
CREATE INDEX ON st ((d::text))
CREATE INDEX ON st ((concat(id, 'x')))
CREATE INDEX ON st ((tz AT TIME ZONE 'UTC'))
CREATE INDEX ON st ((to_char(tz, 'YYYY')))
CREATE INDEX ON st (id) WHERE tz::date > '2020-01-01'
CREATE TABLE sg (a timestamptz, b date GENERATED ALWAYS AS (a::date) STORED)
CREATE TABLE sg (a timestamptz, b text GENERATED ALWAYS AS (a::text) STORED)
CREATE TABLE sc (a timestamptz CHECK (a::date > date '2020-01-01'), b date DEFAULT '2020-07-01 23:30+00'::timestamptz::date)
INSERT INTO sc VALUES ('2020-01-01 23:30+00')
INSERT INTO sc VALUES ('2020-01-01 22:30+00')
SELECT * FROM sc
ALTER TABLE st ALTER COLUMN ts TYPE timestamptz
SELECT ts FROM st ORDER BY id
