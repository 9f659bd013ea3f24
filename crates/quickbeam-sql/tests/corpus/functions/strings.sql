# Chapter 9.4 to 9.6: strings, binary strings, bit strings
:= s 'Thomas' ¦ '' ¦ 'Größe ßtr' ¦ NULL::text ¦ 'a,b,,c'
SELECT ⟨length¦char_length¦octet_length¦bit_length¦upper¦lower¦initcap¦reverse¦md5¦ascii¦quote_ident¦quote_literal¦quote_nullable¦btrim¦ltrim¦rtrim¦to_ascii¦parse_ident⟩(⟨$s⟩)
SELECT ⟨left¦right¦repeat¦substr¦substring¦lpad¦rpad⟩(⟨$s⟩, ⟨0¦2¦-2¦100⟩)
SELECT ⟨lpad¦rpad⟩(⟨$s⟩, ⟨0¦9¦3⟩, ⟨'xy'¦''⟩)
SELECT ⟨substr¦substring⟩(⟨$s⟩, ⟨1¦0¦-1¦3⟩, ⟨2¦0¦100¦-1⟩)
SELECT ⟨strpos¦starts_with⟩(⟨$s⟩, ⟨'om'¦''¦'T'⟩)
SELECT replace(⟨$s⟩, ⟨'a'¦''¦'mas'⟩, ⟨'X'¦''⟩), translate(⟨$s⟩, 'amo', 'xy')
SELECT split_part(⟨$s⟩, ',', ⟨1¦2¦3¦-1¦9⟩)
SELECT split_part('a,b', ',', 0)
SELECT overlay('Txxxxas' placing 'hom' from ⟨2¦1¦9⟩ ⟨¦for 4¦for 0⟩)
SELECT position(⟨'om'¦''¦'z'⟩ in 'Thomas'), substring('Thomas' from 2 for 3), substring('Thomas' from '...$'), substring('Thomas' from '%#"o_a#"_' for '#')
SELECT trim(⟨both¦leading¦trailing¦⟩ ⟨'xyz' from¦from⟩ 'yxTomxx '), trim('  a  ')
SELECT btrim('xyxtrimyyx', 'xyz'), ltrim('zzzytest', 'xyz'), rtrim('testxxzx', 'xyz')
SELECT chr(⟨65¦8364¦0¦1114112¦-1⟩)
SELECT concat(⟨1, NULL, 'a', true¦'x'¦NULL¦VARIADIC ARRAY['a','b']⟩), concat_ws(',', ⟨'a', NULL, 'b'¦VARIADIC ARRAY[1,2]¦NULL⟩), concat_ws(NULL, 'a')
SELECT format(⟨'Hello %s', 'World'¦'%s %s', 1, NULL¦'%I.%L', 'a b', 'it''s'¦'%1$s %1$s', 'x'¦'%-5s|', 'a'¦'%5s|', 'a'¦'%*s|', 4, 'a'¦'%%'¦'%s'¦'%x', 1¦'%L', NULL¦'%I', NULL¦'%2$s', 'a', 'b'¦'%s', VARIADIC ARRAY['z']⟩)
SELECT ⟨to_hex(255)¦to_hex(-1)¦to_hex(255::bigint)¦normalize('é')¦normalize(U&'e\0301', NFC)¦U&'e\0301' IS NORMALIZED¦'é' IS NFD NORMALIZED¦unistr('d\0061t\+000061')¦string_to_array('a,b', ',')¦array_to_string(ARRAY[1,NULL,2], ',', '*')¦string_to_table('a,b', ',')¦regexp_split_to_table('a b', ' ')⟩
SELECT parse_ident(⟨'"SomeSchema".someTable'¦'a.b.c'¦'a b'¦'a.'⟩), parse_ident('foo boo', false)
SELECT quote_ident(⟨'select'¦'a b'¦'abc'¦'Abc'¦'a"b'⟩), quote_literal(⟨42.5¦'a''b'¦E'a\\b'⟩), quote_nullable(NULL)
SELECT ⟨'a' || 'b'¦'a' || NULL¦'x' || 5 || true¦'abc' ^@ 'ab'¦'a' 'b'⟩
SELECT ⟨encode¦⟩('\x123456ff'::bytea, ⟨'hex'¦'base64'¦'escape'¦'nosuch'⟩)
SELECT decode(⟨'MTIz', 'base64'¦'1fA0', 'hex'¦'a\000b', 'escape'¦'zz', 'hex'¦'MT', 'base64'⟩)
SELECT convert_from('\x746578745f696e5f75746638', 'UTF8'), convert_to('some_text', 'UTF8'), convert('text'::bytea, 'UTF8', 'LATIN1'), convert_to('é', 'LATIN1'), convert_from('\xe9', 'LATIN1')
SELECT convert_from('\xff', 'UTF8')
:= b '\x1234567890'::bytea ¦ ''::bytea
SELECT ⟨length¦octet_length¦bit_length¦bit_count¦md5¦sha224¦sha256¦sha384¦sha512⟩(⟨$b⟩)
SELECT ⟨get_bit('\x1234567890'::bytea, 30)¦get_byte('\x1234567890'::bytea, 4)¦set_bit('\x1234567890'::bytea, 30, 0)¦set_byte('\x1234567890'::bytea, 4, 64)¦get_byte('\x12'::bytea, 9)¦substr('\x1234567890'::bytea, 3, 2)¦overlay('\x1234567890'::bytea placing '\002\003'::bytea from 2 for 3)¦position('\x5678'::bytea in '\x1234567890'::bytea)¦trim('\x9012'::bytea from '\x1234567890'::bytea)¦ltrim('\x1234567890'::bytea, '\x9012'::bytea)¦'\x12'::bytea || '\x34'::bytea¦substring('\x1234567890'::bytea from 3 for 2)¦'abc'::bytea LIKE 'a%'::bytea⟩
SELECT length('jose'::bytea, 'UTF8'), pg_client_encoding(), to_ascii('x'), char_length('jo')
