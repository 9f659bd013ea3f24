# Chapter 9.1 to 9.3: logical, comparison and mathematical functions and operators
:= v 0 ¦ 7 ¦ -7 ¦ 2.5 ¦ -2.5 ¦ 1e3::float8 ¦ NULL::int
:= f -1.5 ¦ 0.5 ¦ 0 ¦ 2 ¦ 100
SELECT ⟨abs¦ceil¦floor¦round¦trunc¦sign¦sqrt¦cbrt¦exp¦ln¦log¦log10¦degrees¦radians¦ceiling⟩(⟨$v⟩)
SELECT ⟨sin¦cos¦tan¦cot¦asin¦acos¦atan¦sinh¦cosh¦tanh¦asinh¦acosh¦atanh¦sind¦cosd¦tand¦asind¦acosd¦atand⟩(⟨$f⟩)
SELECT ⟨$v⟩ ⟨%¦/¦*¦^⟩ ⟨3¦-3¦0¦2.5⟩
SELECT ⟨|/ 25.0¦||/ 27.0¦@ -5.0¦5 & 3¦5 | 3¦5 # 3¦~1¦1 << 4¦8 >> 2¦1::bigint << 40¦1 << 33¦- 5¦+ 5¦2 ^ 3 ^ 2¦-2 ^ 2¦@ -5 + 3⟩
SELECT ⟨div¦mod¦gcd¦lcm¦power⟩(⟨17¦-17¦0⟩, ⟨5¦-5¦0⟩)
SELECT ⟨round¦trunc⟩(⟨42.4382¦-42.4382¦1234.5⟩, ⟨2¦0¦-2¦10⟩)
SELECT width_bucket(⟨5.35¦-1¦100⟩, 0.024, 10.06, 5), width_bucket(5, ARRAY[1,3,4,10]), width_bucket(3.0::float8, 0, 10, 5)
SELECT log(2.0, 64.0), log(2, 64), exp(1.0), ln(2.0), sqrt(2), sqrt(2.0), power(2, 0.5), power(9.0, 0.5), pi(), factorial(5), factorial(20)
SELECT factorial(⟨0¦1¦30¦-1¦100⟩)
SELECT scale(8.41), min_scale(8.4100), trim_scale(8.4100), scale(8), numeric '8.4100' = 8.41
SELECT sqrt(-1), ln(0)
SELECT ln(⟨0¦-1¦10¦0.00001¦1e20⟩::⟨numeric¦float8⟩)
SELECT power(⟨0¦-8¦2⟩::⟨numeric¦float8⟩, ⟨-1¦0.5¦1000⟩)
SELECT random() BETWEEN 0 AND 1, setseed(0.5)
SELECT ⟨1¦5¦NULL⟩ ⟨BETWEEN¦NOT BETWEEN¦BETWEEN SYMMETRIC⟩ ⟨1 AND 3¦3 AND 1¦NULL AND 3⟩
SELECT ⟨1¦NULL¦true¦'x'⟩ IS ⟨NULL¦NOT NULL⟩
SELECT ⟨true¦NULL::boolean¦false⟩ IS ⟨TRUE¦NOT TRUE¦FALSE¦UNKNOWN¦NOT UNKNOWN⟩
SELECT ⟨1¦NULL⟩ IS ⟨DISTINCT¦NOT DISTINCT⟩ FROM ⟨1¦2¦NULL⟩
SELECT ⟨num_nulls¦num_nonnulls⟩(⟨1, NULL, 2¦NULL¦VARIADIC ARRAY[1,NULL]¦'a', 'b'⟩)
SELECT 1 ⟨<¦<=¦=¦<>¦!=¦>=¦>⟩ ⟨2¦1.0¦'1'¦1.5::float8¦1::smallint⟩
SELECT 1 = 'x'
SELECT 1 = true
SELECT 'a' = 1
SELECT 1 + '2', '1' + '2', 1 || 'a', 'a' || 1, 1 || 2
SELECT NOT NULL, NOT true, true AND NULL, false AND NULL, true OR NULL, false OR NULL
SELECT 5 / 2, -5 / 2, 5 % -3, -5 % 3, 5.0 / 2, 5 / 2.0::float8, mod(5.5, 2)
SELECT int4pl(1,2), int8mul(2,3), float8(1), int4(2.6), text(5), numeric(5)
