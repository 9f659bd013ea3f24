# Chapter 9.9: date and time functions and operators
:= ts timestamp '2001-02-16 20:38:40.12' ¦ timestamptz '2001-02-16 20:38:40+00' ¦ date '2001-02-16'
:= fld century ¦ day ¦ decade ¦ dow ¦ doy ¦ epoch ¦ hour ¦ isodow ¦ isoyear ¦ julian ¦ microseconds ¦ millennium ¦ milliseconds ¦ minute ¦ month ¦ quarter ¦ second ¦ timezone ¦ week ¦ year ¦ nosuch
SELECT extract(⟨$fld⟩ from ⟨$ts⟩)
SELECT date_part('⟨$fld⟩', ⟨$ts⟩)
SELECT extract(⟨$fld⟩ from interval '40 days 1 minute 3 years')
SELECT extract(⟨hour¦minute¦second¦epoch¦day⟩ from time '17:12:28.5')
SELECT date_trunc('⟨microseconds¦second¦minute¦hour¦day¦week¦month¦quarter¦year¦decade¦century¦millennium¦nosuch⟩', ⟨$ts⟩)
SELECT date_trunc('⟨hour¦day¦month¦week⟩', interval '2 days 3 hours 40 minutes'), date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'Australia/Sydney')
SELECT timestamp '2001-01-31 01:00' ⟨+ interval '1 month'¦- interval '1 month'¦+ interval '23 hours'¦- timestamp '2000-12-31'¦+ 1¦- time '03:00'¦< now()⟩
SELECT time '01:00' ⟨+ interval '3 hours'¦- interval '2 hours'¦- time '03:00'¦+ interval '25 hours'¦+ date '2001-09-28'⟩
SELECT interval '1 day' ⟨+ interval '1 hour'¦- interval '1 hour'¦* 21¦* 3.5¦/ 1.5¦/ 0¦* 1e10¦= interval '24 hours'⟩, - interval '23 hours', 900 * interval '1 second'
SELECT age(timestamp ⟨'2001-04-10'¦'1957-06-13'¦'2004-02-29'⟩, timestamp ⟨'1957-06-13'¦'2001-03-31'⟩)
SELECT date_bin('15 minutes', ⟨timestamp '2020-02-11 15:44:17'¦timestamptz '2020-02-11 15:44:17+00'⟩, ⟨timestamp '2001-01-01'¦timestamp '2001-01-01 00:02:30'⟩)
SELECT isfinite(⟨date '2001-02-16'¦timestamp 'infinity'¦interval '1 day'⟩), justify_days(interval '35 days'), justify_hours(interval '27 hours'), justify_interval(interval '1 mon -1 hour')
SELECT make_date(⟨2013, 7, 15¦-44, 3, 15¦2013, 2, 30¦0, 1, 1⟩), make_time(8, 15, 23.5), make_timestamp(2013, 7, 15, 8, 15, 23.5), make_timestamptz(2013, 7, 15, 8, 15, 23.5, 'UTC'), make_interval(days => 10), make_interval(1, 2, 3, 4, 5, 6, 7.5)
SELECT make_interval(⟨years => 1, hours => 5¦secs => 1.5¦¦1¦weeks := 2⟩)
SELECT (date ⟨'2001-02-16'¦'2001-03-16'⟩, ⟨date '2001-12-21'¦interval '100 days'⟩) OVERLAPS (date '2001-10-30', date '2002-10-30')
SELECT timestamp '2001-02-16 20:38:40' AT TIME ZONE ⟨'America/Denver'¦'UTC'¦'MST'¦'+02'¦interval '-08:00'¦'nosuch'⟩
SELECT timestamptz '2001-02-16 20:38:40-05' AT TIME ZONE ⟨'America/Denver'¦'Asia/Tokyo'¦'EST5EDT'⟩
SELECT now() = transaction_timestamp(), now() = current_timestamp, statement_timestamp() >= now(), clock_timestamp() >= now(), localtimestamp = now()::timestamp, current_date = now()::date, length(timeofday()) > 20, pg_typeof(current_time), pg_typeof(localtime), current_timestamp(0) = now()::timestamptz(0)
SELECT generate_series(timestamp '2008-03-01', '2008-03-04', ⟨'1 day'¦'10 hours'¦'-1 day'¦'0'⟩)
SELECT * FROM generate_series(⟨timestamptz '2008-03-01 00:00+00', '2008-03-03 00:00+00', '1 day'¦date '2020-01-31', date '2020-05-01', '1 month'¦1, 3¦3, 1, -1¦1, 10, 0¦1.5, 3, 0.5¦NULL::int, 2⟩) g
SELECT ⟨date '2001-10-01' - date '2001-09-28'¦date '2001-09-28' + 7¦date '2001-09-28' = timestamp '2001-09-28 00:00'¦timestamptz '2020-01-01 00:00+02' = timestamp '2019-12-31 22:00'¦date 'infinity' - 1¦timestamp 'infinity' + interval '1 day'¦timestamp 'infinity' - timestamp '2000-01-01'⟩
SELECT pg_sleep(0), pg_sleep_for('0 s')
SELECT current_date ⟨+¦-⟩ '1 day'
SELECT sum(i), avg(i), min(i), max(i) FROM (VALUES (interval '1 day'), ('2 hours'), (NULL)) v(i)
