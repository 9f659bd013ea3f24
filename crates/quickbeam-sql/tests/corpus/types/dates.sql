# Chapter 8.5: date and time types
:= d 1999-01-08 ¦ January 8, 1999 ¦ 1/8/1999 ¦ 1/18/1999 ¦ 01/02/03 ¦ 1999-Jan-08 ¦ Jan-08-1999 ¦ 08-Jan-1999 ¦ 99-Jan-08 ¦ 08-Jan-99 ¦ Jan-08-99 ¦ 19990108 ¦ 990108 ¦ 1999.008 ¦ J2451187 ¦ January 8, 99 BC ¦ 8 January 1999 ¦ Fri Jan 8 1999 ¦ 1999-02-30 ¦ 1999-13-01 ¦ epoch ¦ infinity ¦ -infinity ¦ 1999/01/08 ¦ 1999 01 08 ¦ sept 5 2020 ¦ 2020-W01 ¦ '' ¦ x ¦ 1999-1-8 ¦ 0001-01-01 BC ¦ 10000-01-01 ¦ 2024-02-29
SELECT '⟨$d⟩'::date
SELECT '⟨$d⟩'::timestamp
SELECT '⟨today¦tomorrow¦yesterday⟩'::date - current_date
SELECT 'now'::timestamp - now()::timestamp < interval '1 hour', 'now'::date = current_date
SELECT '⟨today¦tomorrow¦yesterday¦now¦today 10:30¦tomorrow allballs⟩'::timestamp >= current_date - 1
:= tm 04:05:06.789 ¦ 04:05:06 ¦ 04:05 ¦ 040506 ¦ 04:05 AM ¦ 04:05 PM ¦ 12:00 am ¦ 12:30 PM ¦ 24:00:00 ¦ 24:00:01 ¦ 25:00 ¦ allballs ¦ 04:05:06.1234567 ¦ 4:5:6 ¦ 04:05:60 ¦ 04:60:00 ¦ T040506 ¦ 23:59:59.9999999 ¦ 1:2 pm
SELECT '⟨$tm⟩'::time
SELECT '⟨$tm⟩'::time(⟨0¦2¦3⟩)
SELECT '⟨04:05:06.789-8¦04:05:06-08:00¦040506-08¦04:05:06 PST¦04:05:06 UTC¦04:05:06+05:30¦2003-04-12 04:05:06 America/New_York¦04:05:06¦04:05:06 z¦allballs⟩'::timetz
SELECT '04:05:06+02'::timetz ⟨<¦=¦>⟩ '⟨04:05:06+01¦03:05:06+01¦02:05:06+00⟩'::timetz
SELECT '04:05:06+02'::timetz ⟨+¦-⟩ interval '90 minutes'
SELECT '10:00:00+02'::timetz AT TIME ZONE ⟨'UTC'¦'+05'¦interval '3 hours'⟩, extract(⟨timezone¦hour¦epoch⟩ from '10:00+02'::timetz)
SELECT '10:00+02'::timetz::time, '10:00'::time::timetz, '2020-01-01 10:00+02'::timestamptz::timetz
:= ts 1999-01-08 04:05:06 ¦ 1999-01-08 04:05:06 -8:00 ¦ January 8 04:05:06 1999 PST ¦ 2004-10-19 10:23:54+02 ¦ 2004-10-19T10:23:54Z ¦ 20041019T102354 ¦ 2004-10-19 10:23:54 Europe/Berlin ¦ 2004-10-19 10:23:54 CEST ¦ Mon Oct 19 10:23:54 2004 ¦ Oct 19 10:23:54 2004 EST ¦ 2004-10-19 24:00 ¦ 2004-10-19 10:23:54.987654321 ¦ 2004-10-19 10:23 PM ¦ 2004-10-19 ¦ 10:23 2004-10-19 ¦ infinity ¦ 294276-12-31 23:59:59 ¦ 294277-01-01 ¦ 4714-11-24 00:00:00 BC ¦ 4714-11-23 BC ¦ 2004-10-19 10:23:54 +05:30:15 ¦ 2004-10-19 10:23:54 Nowhere/City ¦ 2004-10-19 10:23:54 BC ¦ J2451187 04:05 ¦ 2004-10-19 10:23:54 GMT+3
SELECT '⟨$ts⟩'::timestamp
SELECT '⟨$ts⟩'::timestamptz
SELECT '2004-10-19 10:23:54.987654'::timestamp(⟨0¦1¦3¦6⟩), '2004-10-19 10:23:54.987654'::timestamptz(⟨0¦1¦3¦6⟩)
:= iv 1 day ¦ 1-2 ¦ 3 4:05:06 ¦ 1 year 2 months 3 days 4 hours 5 minutes 6 seconds ¦ P1Y2M3DT4H5M6S ¦ P0001-02-03T04:05:06 ¦ 1.5 days ¦ -1 day +02:03 ¦ 1 week ago ¦ @ 1 minute ¦ 2 decades 3 centuries ¦ 1 mon -1 day ¦ 90 ¦ 1:30 ¦ 1 day 25:00 ¦ 5 fortnights ¦ 1.5 months ¦ 0.5 year ¦ 1 h 2 m ¦ 3 mins 4 secs ¦ -00:00:01 ¦ 1 millisecond ¦ 500 ms ¦ 1e3 seconds ¦ PT36H ¦ P1W ¦ '' ¦ 100000000 years ¦ 1y2mon3d ¦ P-1Y ¦ 1 day 2 days
SELECT '⟨$iv⟩'::interval
SELECT interval '⟨1¦1.5¦1-2¦1 2:03:04¦1:30⟩' ⟨year¦month¦day¦hour¦minute¦second¦year to month¦day to hour¦day to second¦hour to minute¦minute to second¦second(1)⟩
SELECT '1 day 10:23:54.98765'::interval(⟨0¦2¦6⟩), '1-2'::interval year
SET IntervalStyle = 'sql_standard'
SELECT '⟨1 day¦1-2¦-1 day -2:03¦1 year 2 mons -3 days 04:05:06¦0¦-1-2¦1.5 seconds⟩'::interval
SET IntervalStyle = 'postgres_verbose'
SELECT '⟨1 day¦1-2¦-1 day -2:03¦1 year 2 mons -3 days 04:05:06¦0¦1.5 seconds¦1 hour⟩'::interval
SET IntervalStyle = 'iso_8601'
SELECT '⟨1 day¦1-2¦-1 day -2:03¦1 year 2 mons -3 days 04:05:06¦0¦1.5 seconds¦1 hour⟩'::interval
RESET IntervalStyle
SET DateStyle = '⟨SQL, MDY¦SQL, DMY¦Postgres, MDY¦Postgres, DMY¦German¦ISO, DMY¦ISO, YMD⟩'
SELECT '1997-12-17'::date, '1997-12-17 07:37:16.5'::timestamp, '1997-12-17 07:37:16+02'::timestamptz, 'infinity'::date
SELECT '01/02/2003'::date
SHOW DateStyle
SET DateStyle = 'SQL, DMY'
SELECT '1997-12-17'::date, '1997-12-17 07:37:16.5'::timestamp, '1997-12-17 07:37:16+02'::timestamptz, '01/02/2003'::date, '13/02/2003'::date
SET DateStyle = 'Postgres, MDY'
SELECT '1997-12-17'::date, '1997-12-17 07:37:16.5'::timestamp, '1997-12-17 07:37:16+02'::timestamptz, '0044-03-15 BC'::date
SET DateStyle = 'German'
SELECT '1997-12-17'::date, '1997-12-17 07:37:16.5'::timestamp, '1997-12-17 07:37:16+02'::timestamptz, '0044-03-15 BC'::date
SET DateStyle = 'ISO, MDY'
SET TimeZone = '⟨America/New_York¦Europe/Berlin¦Asia/Kolkata¦+3¦-03:30¦PST8PDT¦GMT¦Nowhere¦5.5⟩'
SHOW TimeZone
SET TimeZone = 'America/New_York'
SELECT '2024-07-04 12:00'::timestamptz, '2024-01-04 12:00'::timestamptz, '2024-07-04 12:00+00'::timestamptz::timestamp, '2024-07-04 12:00'::timestamp::timestamptz
SELECT '2024-03-10 02:30'::timestamptz, '2024-11-03 01:30'::timestamptz, '1850-01-01'::timestamptz
SELECT date_trunc('day', '2024-07-04 02:00+00'::timestamptz), extract(hour from '2024-07-04 12:00+00'::timestamptz), extract(timezone from '2024-07-04 12:00+00'::timestamptz)
SELECT '2024-03-09 12:00'::timestamptz + ⟨interval '1 day'¦interval '24 hours'¦interval '1 month'⟩
SELECT '2024-07-04'::date::timestamptz, to_char('2024-07-04 12:00+00'::timestamptz, 'YYYY-MM-DD HH24:MI TZ OF'), '2024-07-04 12:00+00'::timestamptz::date, '2024-07-04 02:00+00'::timestamptz::time
SELECT to_timestamp(0), make_timestamptz(2024,7,4,12,0,0), '2024-07-04 12:00+00'::timestamptz::text, age('2024-07-04 02:00+00'::timestamptz, '2024-01-01 00:00+00'::timestamptz)
SET TimeZone = 'UTC'
SELECT date '2001-09-28' ⟨+ 7¦- 7¦+ interval '1 hour'¦- interval '1 day'¦+ time '03:00'¦- date '2001-10-01'¦+ 1.5¦= timestamp '2001-09-28'¦< timestamptz '2001-09-29'⟩
SELECT '⟨00:00 AM¦00:30 PM¦12:30 AM¦13:30 PM⟩'::time
