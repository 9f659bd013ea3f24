# Chapter 9.16: JSON functions and operators
:= j '{"a":{"b":{"c":1}},"d":[1,2,null,"x"],"e":"text","f":null}'
:= jt json ¦ jsonb
SELECT ⟨$j⟩::⟨$jt⟩ ⟨->¦->>⟩ ⟨'a'¦'d'¦'e'¦'f'¦'nosuch'¦0⟩
SELECT '[1,{"a":2},"x",null]'::⟨$jt⟩ ⟨->¦->>⟩ ⟨0¦1¦-1¦3¦9¦'a'⟩
SELECT ⟨$j⟩::⟨$jt⟩ ⟨#>¦#>>⟩ '⟨{a,b}¦{d,0}¦{d,-1}¦{}¦{nosuch}¦{d,x}⟩'
SELECT ⟨$j⟩::jsonb ⟨@>¦<@⟩ '⟨{"e":"text"}¦{"d":[1]}¦{"a":{}}¦[]⟩'
SELECT ⟨$j⟩::jsonb ⟨? 'a'¦? 'z'¦?| ARRAY['z','a']¦?& ARRAY['a','d']¦- 'a'¦- ARRAY['a','d']¦#- '{a,b}'¦|| '{"z":9}'¦- 1⟩
SELECT '[1,2,3]'::jsonb ⟨- 1¦- -1¦|| '[4]'¦|| '5'¦@> '2'¦? '2'⟩
SELECT ⟨$j⟩::jsonb ⟨@? '$.d[*] ? (@ > 1)'¦@@ '$.d[0] == 1'¦@@ '$.e starts with "te"'⟩
:= p $ ¦ $.a ¦ $.a.b.c ¦ $.d[*] ¦ $.d[0] ¦ $.d[last] ¦ $.d[0 to 1] ¦ $.* ¦ $.** ¦ $.d[*] ? (@ > 1) ¦ $.d.size() ¦ $.e.type() ¦ $.nosuch ¦ strict $.nosuch ¦ $.d[0] + 5 ¦ -$.d[0] ¦ $.d[*] ? (@ like_regex "^x") ¦ $.a.keyvalue() ¦ $.d[*].type() ¦ $.d ? (exists (@[*] ? (@ == 1))) ¦ $.d[0].double() ¦ $.d[9] ¦ strict $.d[9] ¦ $.d[*] ? (@ == null) ¦ $.e ? (@ == "text" || @ == "z") ¦ $.d[*] ? (@ >= $x) ¦ $.d[0].abs() ¦ lax $.a.b ¦ $.d[ ¦ $.d[*] ? (@.type() == "number" && @ > 1) ¦ $.**{1} ¦ $.d[*] ? ((@ > 1) is unknown) ¦ $.d[1] % 2 == 0
SELECT jsonb_path_query(⟨$j⟩, '⟨$p⟩')
SELECT jsonb_path_exists(⟨$j⟩, '⟨$p⟩')
SELECT jsonb_path_query_array(⟨$j⟩, '⟨$p⟩', '{"x":2}')
SELECT jsonb_path_query_first(⟨$j⟩, '⟨$p⟩', '{"x":2}', true)
SELECT jsonb_path_match(⟨$j⟩, ⟨'$.d[0] == 1'¦'exists($.a)'¦'$.a'¦'$.e == "x"'⟩)
SELECT '⟨$p⟩'::jsonpath
SELECT ⟨to_json¦to_jsonb⟩(⟨1¦'x'::text¦true¦NULL::int¦ARRAY[1,2]¦ROW(1,'a')¦date '2020-01-01'¦timestamp '2020-01-01 10:00'¦1.50¦'{"a":1}'::json¦interval '1 day'⟩)
SELECT ⟨json_build_array¦jsonb_build_array⟩(1, 'a', NULL, true), ⟨json_build_object¦jsonb_build_object⟩('a', 1, 'b', NULL, 'c', ARRAY[1,2])
SELECT ⟨json_build_object('a')¦json_build_object(NULL, 1)¦json_object('{a,1,b,2}')¦json_object('{a,b}', '{1,2}')¦jsonb_object('{{a,1},{b,2}}')¦json_build_array()¦row_to_json(ROW(1,'x'))¦row_to_json(ROW(1,'x'), true)¦array_to_json(ARRAY[[1,2],[3,4]])¦array_to_json(ARRAY[1,2], true)⟩
SELECT ⟨json_array_length('[1,2]')¦jsonb_array_length('{}')¦json_typeof('1')¦jsonb_typeof('null')¦jsonb_pretty('{"a":[1,2]}')¦json_strip_nulls('{"a":1,"b":null}')¦jsonb_strip_nulls('[1,null]')¦json_extract_path('{"a":{"b":1}}', 'a', 'b')¦jsonb_extract_path_text('{"a":{"b":"x"}}', 'a', 'b')¦jsonb_set('{"a":1}', '{b}', '2')¦jsonb_set('{"a":1}', '{b}', '2', false)¦jsonb_set('[1,2]', '{0}', '9')¦jsonb_insert('[1,2]', '{1}', '9')¦jsonb_insert('[1,2]', '{1}', '9', true)¦jsonb_set_lax('{"a":1}', '{a}', NULL, true, 'delete_key')¦jsonb_set_lax('{"a":1}', '{a}', NULL)⟩
SELECT * FROM ⟨json_each('{"a":1,"b":"x"}')¦jsonb_each_text('{"a":1,"b":"x"}')¦json_array_elements('[1,{"a":2}]')¦jsonb_array_elements_text('[1,"x",null]')¦json_object_keys('{"a":1,"b":2}')¦jsonb_object_keys('[]')¦json_to_record('{"a":1,"b":"x"}') AS x(a int, b text)¦jsonb_to_recordset('[{"a":1},{"a":2,"b":"z"}]') AS x(a int, b text)⟩
SELECT json_each('{"a":1}'), jsonb_object_keys('{"k":1}')
CREATE TYPE jr AS (a int, b text)
SELECT * FROM json_populate_record(NULL::jr, '{"a":1,"b":"x"}'), jsonb_populate_recordset(NULL::jr, '[{"a":1},{"b":"q"}]')
SELECT ('{"a":{"b":[1,2]}}'::jsonb)['a']['b'][1], ('[1,2]'::jsonb)[0]
SELECT '{"a":1}'::jsonb ⟨=¦<¦>⟩ '⟨{"a":1.0}¦{"a":2}¦[1]¦"x"⟩'::jsonb
SELECT ('{"a":⟨1.5¦"2"¦true¦null⟩}'::jsonb -> 'a')::⟨int¦text¦boolean¦numeric⟩
SELECT ⟨json_agg¦jsonb_agg⟩(x ORDER BY x), ⟨json_object_agg¦jsonb_object_agg⟩(x, x * 2) FROM (VALUES (1), (2)) v(x)
SELECT row_to_json(v), to_jsonb(v), json_agg(v) OVER () FROM (VALUES (1, 'a')) v(x, y)
SELECT jsonb_path_exists('{"a":[1,2]}', '$.a[*] ? (@ > $x)', vars => '{"x":⟨1¦2⟩}'), array_to_json(ARRAY[[1,2],[3,4]], ⟨true¦false⟩)
