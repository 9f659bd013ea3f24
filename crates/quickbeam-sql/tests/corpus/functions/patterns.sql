# Chapter 9.7: pattern matching
:= s 'abc' ¦ 'a%c' ¦ '' ¦ 'foobarbequebaz' ¦ E'a\nb'
SELECT ⟨$s⟩ ⟨LIKE¦NOT LIKE¦ILIKE⟩ ⟨'a%'¦'_b_'¦'%C'¦''¦'%'¦'a\%c'⟩
SELECT 'a%c' LIKE 'a#%c' ESCAPE '#', 'abc' LIKE 'a\' ESCAPE '', 'abc' ~~ 'a%', 'abc' !~~* 'A%'
SELECT 'abc' LIKE 'abc\'
SELECT ⟨$s⟩ ⟨SIMILAR TO¦NOT SIMILAR TO⟩ ⟨'abc'¦'a'¦'%(b|d)%'¦'(b|c)%'¦'_{3}'⟩
SELECT ⟨$s⟩ ⟨~¦~*¦!~¦!~*⟩ ⟨'^a'¦'b.*c'¦'[[:alpha:]]+'¦'^(b|c)'¦'\d'¦'B'¦'a.b'¦'(ab)+'⟩
SELECT regexp_replace(⟨$s⟩, ⟨'b..', 'X'¦'b..', 'X', 'g'¦'b(..)', 'X\1Y', 'g'¦'B', 'x', 'i'¦'a', '\\&'¦'^', '>', 'n'¦'[aeiou]', '<\&>', 1, 2⟩)
SELECT regexp_match(⟨$s⟩, ⟨'(bar)(beque)'¦'a'¦'z'¦'B', 'i'⟩), regexp_matches(⟨$s⟩, '(b)(.)', 'g')
SELECT regexp_split_to_array('the quick  brown', ⟨'\s+'¦'\s*'¦'q'⟩), regexp_count('ABCABCAXYaxy', 'A.', 1, 'i'), regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i', 2), regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2), regexp_like('Hello', 'world', 'i')
SELECT substring('foobar' from 'o.b'), substring('foobar' from 'o(.)b'), substring('foobar' similar '%#"o_b#"%' escape '#')
SELECT 'abc' ~ ⟨'('¦'[a'¦'a{2,1}'¦'*'¦'\'⟩
SELECT 'abab' ~ '(ab)\1', 'foobar' ~ 'foo(?=bar)', 'foo' ~ '(?<!x)foo', 'x1' ~ '\y1', 'aa bb' ~ '\mbb\M', 'ab' ~ '(?i)AB'
SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g')
SELECT 'xay' ~ ⟨'x[[:<:]]'¦'\Ax'¦'y\Z'¦'[^[:digit:]]'¦'x(?:a|b)y'¦'\w+'¦'x.?y'¦'xa{1,2}y'⟩
