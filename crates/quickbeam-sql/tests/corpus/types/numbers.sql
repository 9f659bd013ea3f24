# Chapter 8.1 and 8.2: numbers and money
:= int 0 ¦ 1 ¦ -1 ¦ 127 ¦ 32767 ¦ -32768 ¦ 32768 ¦ 2147483647 ¦ -2147483648 ¦ 2147483648 ¦ 9223372036854775807 ¦ 9223372036854775808
:= num 0.0 ¦ 1.5 ¦ -2.50 ¦ 0.001 ¦ 123456789.123456789 ¦ 1e10 ¦ 1.5e-3 ¦ .5 ¦ 7. ¦ 99999999999999999999.99
:= t smallint ¦ integer ¦ bigint ¦ numeric ¦ real ¦ double precision ¦ text ¦ numeric(10,2)
SELECT ⟨$int⟩
SELECT ⟨$num⟩
SELECT (⟨$int⟩)::⟨$t⟩
SELECT (⟨$num⟩)::⟨$t⟩
SELECT '⟨ 12 ¦-7¦1e3¦1_000¦0x1F¦¦abc¦1.0¦NaN¦Infinity¦-inf¦+5¦--1¦9999999999¦1e400¦1e-400⟩'::⟨$t⟩
SELECT ⟨'NaN'¦'Infinity'¦'-Infinity'¦'1e131071'¦'1e-16383'¦'12345678901234567890123456789012345678901234567890.5'⟩::numeric
SELECT ⟨'NaN'¦'Infinity'¦'-Infinity'¦'3.5'⟩::numeric ⟨+¦-¦*¦/¦%¦<¦=¦>⟩ ⟨'NaN'¦'Infinity'¦'2'¦'0'⟩::numeric
SELECT ⟨'NaN'¦'Infinity'¦'-Infinity'¦'3.5'⟩::float8 ⟨+¦-¦*¦/¦<¦=¦>⟩ ⟨'NaN'¦'Infinity'¦'2'⟩::float8
SELECT ⟨12345.678¦-0.05¦999.995¦0.5¦99.95⟩::numeric(⟨5,2¦3,0¦4¦10,5¦2,1¦3,5¦5,-2⟩)
SELECT ⟨1.005¦2.5¦3.5¦-2.5¦0.5⟩::⟨float4¦float8⟩::⟨int¦numeric¦numeric(5,1)⟩
SELECT 0.1::float4, 0.1::float8, 1e15::float8, 1e16::float8, 1e-5::float8, 123456789::float4, 1e20::float4, '-0'::float8
SELECT 99999999999999999999999999999999999999 + 1, 1e50 * 1e50, 2::numeric ^ 200
SELECT 1::numeric / 3, 2.0 / 3, 1e20 / 3, 1 / 3.000000, 1000000 / 7.0, 0.00001 / 3
SELECT 12345678901234567890123456789 * 98765432109876543210987654321
SELECT ⟨1::smallint¦1::int¦1::bigint¦1::numeric¦1::real¦1::float8⟩ ⟨+¦-¦*¦/⟩ ⟨2::smallint¦2::int¦2::bigint¦2::numeric¦2::real¦2::float8⟩
SELECT 32767::smallint + 1::smallint
SELECT 2147483647 + 1
SELECT 9223372036854775807 * 2
SELECT (-2147483648) / (-1)
SELECT abs(-2147483648::int)
SELECT '$1,234.56'::money
SELECT '12.345'::money, 5::money, 1.5::numeric::money
SELECT '10'::money ⟨+¦-¦/⟩ '3'::money
SELECT '10'::money ⟨*¦/⟩ ⟨2¦2.5::float8⟩
SELECT '-1.50'::money::numeric, '1.50'::money::text, '3'::money > '2'::money
