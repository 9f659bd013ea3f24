# Chapter 9.8: data type formatting
:= n 0 ¦ 485 ¦ -485 ¦ 148.5 ¦ 0.1 ¦ 12454.8 ¦ -12.345
:= nf 999 ¦ 9.99 ¦ 0.9 ¦ 09999.90 ¦ 9,999 ¦ 9G999D99 ¦ S999 ¦ 999S ¦ MI999 ¦ 999MI ¦ 999PR ¦ PL999 ¦ SG999 ¦ FM999.99 ¦ FM990.00 ¦ L999 ¦ RN ¦ FMRN ¦ 999th ¦ 999TH ¦ 99V9 ¦ 9.99EEEE ¦ "Good number:"999 ¦ B999 ¦ 000 ¦ FM0000 ¦ 9 9 9
SELECT to_char(⟨$n⟩::⟨numeric¦float8⟩, '⟨$nf⟩')
SELECT to_char(⟨485¦-1¦4000⟩::⟨int¦bigint⟩, ⟨'999'¦'RN'¦'9999th'¦'0000'⟩)
:= df YYYY-MM-DD HH24:MI:SS ¦ HH12:MI:SS AM ¦ Day, DD Month YYYY ¦ FMDay, FMDD FMMonth ¦ Dy DD Mon YY ¦ DDD ¦ IYYY-IW-ID ¦ Q ¦ WW W ¦ J ¦ CC ¦ MS US ¦ SSSS ¦ YYYYth ¦ DDth ¦ day DAY Day ¦ RM rm ¦ TZ tz ¦ OF TZH:TZM ¦ FF1 FF3 FF6 ¦ BC AD b.c. ¦ "quoted" YY ¦ Y,YYY ¦ am pm A.M. ¦ HH:MI ¦ SSSSS ¦ D ID ¦ TMMonth ¦ month MONTH mon MON ¦ I IY IYY ¦ IDDD
SELECT to_char(⟨timestamp '2004-10-19 10:23:54.987'¦timestamptz '2004-02-01 00:00:05+00'¦timestamp '0044-03-15 BC'¦date '2024-12-31'⟩, '⟨$df⟩')
SELECT to_char(interval '⟨15h 2m 12s¦-1 day 03:04:05¦1 year 2 mons 400 days¦0⟩', '⟨HH24:MI:SS¦YYYY MM DD¦HH12 AM¦DDD SSSS¦MS US⟩')
SELECT to_date(⟨'05 Dec 2000', 'DD Mon YYYY'¦'20001205', 'YYYYMMDD'¦'2000-13-01', 'YYYY-MM-DD'¦'99-12-05', 'YY-MM-DD'¦'2000-365', 'YYYY-DDD'¦'2006-42-4', 'IYYY-IW-ID'¦'x', 'YYYY'¦'44 BC', 'YYYY BC'¦'J2451187', '"J"J'¦'2000/Jan/05', 'YYYY/Mon/DD'⟩)
SELECT to_timestamp(⟨'05 Dec 2000', 'DD Mon YYYY'¦'2000-12-05 10:20:30.123', 'YYYY-MM-DD HH24:MI:SS.MS'¦'12:30 PM', 'HH12:MI PM'¦'2000-12-05 25:00', 'YYYY-MM-DD HH24:MI'¦'10:20+05', 'HH24:MITZH'⟩)
SELECT to_timestamp(⟨0¦1284352323.5¦-1¦'Infinity'⟩)
SELECT to_number(⟨'12,454.8-', '99G999D9S'¦'485', '999'¦'-12', 'S99'¦'$1,234.5', 'L9,999.9'¦'x', '9'¦'1 2', '9 9'¦'<5>', '9PR'¦'123', '9'⟩)
SELECT to_number('1234', '⟨99V99¦9999V9¦V9999⟩')
SELECT to_char(timestamp '2024-01-02', '⟨YYYY\"x\"¦"a\"b" DD¦DD\\DD⟩'), to_char(12, '⟨99\"9"x\"¦"a\"9\\"99⟩')
