# Chapter 9.17 to 9.25: sequences, conditionals, arrays, rows, subqueries, sets, system information
SELECT ⟨coalesce(NULL, 1)¦coalesce(NULL, NULL)¦coalesce(1, 'a')¦nullif(1, 1)¦nullif(1, 2)¦nullif('a', 'b')¦greatest(1, NULL, 3)¦least('b', 'a')¦greatest(1, 2.5)¦greatest(date '2020-01-01', '2021-01-01')¦coalesce(1, 2.5)¦nullif(1, 1.0)⟩
SELECT CASE ⟨1¦2¦NULL⟩ WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'other' END, CASE WHEN ⟨true¦false¦NULL⟩ THEN 1 END
SELECT CASE WHEN true THEN 1 ELSE ⟨2.5¦'3'¦'x'¦NULL⟩ END
:= a ARRAY[1,4,3] ¦ '{}'::int[] ¦ ARRAY[[1,2],[3,4]] ¦ '[0:1]={5,6}'::int[] ¦ NULL::int[]
SELECT ⟨array_length(⟨$a⟩, 1)¦array_ndims(⟨$a⟩)¦array_dims(⟨$a⟩)¦cardinality(⟨$a⟩)¦array_lower(⟨$a⟩, 1)¦array_upper(⟨$a⟩, 1)¦array_append(⟨$a⟩, 9)¦array_prepend(9, ⟨$a⟩)¦array_remove(⟨$a⟩, 3)¦array_position(⟨$a⟩, 4)¦array_positions(⟨$a⟩, 4)¦array_replace(⟨$a⟩, 4, 7)¦array_to_string(⟨$a⟩, ',')¦trim_array(⟨$a⟩, 1)¦unnest(⟨$a⟩)¦generate_subscripts(⟨$a⟩, 1)¦array_cat(⟨$a⟩, ARRAY[7])¦to_json(⟨$a⟩)⟩
SELECT ⟨$a⟩ ⟨@>¦<@¦&&¦=¦<¦||⟩ ⟨ARRAY[1,3]¦'{}'::int[]⟩
SELECT (⟨$a⟩)[⟨1¦0¦9¦1:2¦:2¦2:¦1][1⟩]
SELECT array_fill(⟨7, ARRAY[3]¦7, ARRAY[2], ARRAY[2]¦NULL::int, ARRAY[0]⟩), string_to_array('xx~~yy~~zz', '~~', 'yy'), string_to_array(NULL, ','), string_to_array('abc', NULL)
SELECT ⟨1¦9¦NULL⟩ ⟨= ANY¦<> ALL¦> ALL¦< SOME⟩ (⟨ARRAY[1,2]¦'{}'::int[]¦ARRAY[1,NULL]¦'{1,2}'⟩)
SELECT ⟨1¦9¦NULL⟩ ⟨IN¦NOT IN⟩ (⟨1, 2¦1, NULL¦SELECT 1¦VALUES (9), (NULL)¦SELECT 1 WHERE false⟩)
SELECT 'abc' ⟨LIKE ANY¦LIKE ALL¦~ ANY¦ILIKE ANY⟩ (ARRAY['a%', 'b%'])
SELECT ROW(1,2) ⟨IN¦NOT IN⟩ (⟨ROW(1,2), ROW(3,4)¦SELECT 1, 2⟩), ROW(1,2.5) = ROW(1,2.5), ROW(1,'a') < ROW(1,'b'), ROW(1,NULL) = ROW(1,2)
SELECT EXISTS (SELECT 1 WHERE ⟨true¦false⟩), (SELECT 1 WHERE false), ARRAY(SELECT generate_series(1,3))
SELECT (SELECT generate_series(1, 2))
SELECT generate_series(1, 3), generate_series(1, 2), 'x'
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) WITH ORDINALITY u(a, b, n)
SELECT ⟨current_user¦session_user¦current_role¦user⟩ IS NOT NULL, current_schema, current_schemas(⟨true¦false⟩), current_database() IS NOT NULL, version() LIKE 'PostgreSQL 15%', pg_backend_pid() > 0
SELECT ⟨has_table_privilege('pg_class', 'SELECT')¦has_schema_privilege('public', 'USAGE')¦has_database_privilege(current_database(), 'CONNECT')¦pg_has_role(current_user, 'USAGE')¦pg_is_in_recovery()¦inet_server_addr()¦pg_jit_available()¦pg_postmaster_start_time() <= now()¦pg_conf_load_time() <= now()¦txid_current() > 0¦pg_my_temp_schema()¦pg_is_other_temp_schema(0)¦pg_trigger_depth()¦pg_current_xact_id_if_assigned() IS NULL¦pg_encoding_to_char(6)¦pg_char_to_encoding('UTF8')¦getdatabaseencoding()¦current_setting('server_version_num')::int / 10000¦current_setting('nosuch', true)¦current_setting('nosuch')⟩
SELECT ⟨format_type(23, NULL)¦format_type(1043, 7)¦format_type(1700, 655366)¦format_type(1007, NULL)¦format_type(NULL, 1)¦format_type(0, NULL)¦format_type(1114, 3)¦pg_table_is_visible('pg_class'::regclass)¦pg_type_is_visible('int'::regtype)¦to_regclass('nosuch')¦to_regtype('int')¦to_regtype('nosuch')¦to_regnamespace('public')¦obj_description('pg_class'::regclass, 'pg_class') IS NULL¦pg_size_pretty(12345678::bigint)¦pg_size_pretty(100::bigint)¦pg_size_bytes('1 kB')¦pg_column_size(1)¦pg_typeof(pg_typeof(1))¦pg_get_userbyid(10) IS NOT NULL¦pg_get_keywords() IS NULL LIMIT 1¦row_security_active('pg_class')¦pg_get_function_arguments(0)¦pg_input_is_valid('1', 'int')⟩
CREATE SEQUENCE sq START 5 INCREMENT 2
SELECT ⟨nextval('sq')¦currval('sq')¦lastval()¦setval('sq', 20)¦setval('sq', 30, false)¦nextval('sq')¦nextval('sq'::regclass)¦setval('sq', -5)¦nextval('nosuch')⟩
SELECT last_value, is_called FROM sq
SELECT ⟨f(1)¦nosuch(1)¦abs('x')¦abs(1, 2)¦lower(1)¦length(5)¦sum(1, 2)⟩
SELECT 1 WHERE ⟨1¦'true'¦'x'¦NULL¦true AND NULL⟩
SELECT ⟨ARRAY[1, 'a']¦ARRAY[1, 2.5]¦ARRAY[ARRAY[1], ARRAY[2,3]]¦ARRAY[]¦ARRAY[NULL]¦ARRAY[1] || 2¦0 || ARRAY[1]¦ARRAY[1] || ARRAY[[2]]¦ARRAY['a'] || 'b'¦ARRAY['a'] || '{b}'¦'{1,2}'::int[] || '{3}'⟩
