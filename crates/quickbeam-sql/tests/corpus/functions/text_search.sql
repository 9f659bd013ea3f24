# Chapter 9.13 and 12: full text search
SELECT to_tsvector(⟨'english', ¦'simple', ¦⟩'⟨The Fat Rats ate 3 fat cats¦¦running runs ran¦foo-bar a@b.com¦jumping over lazy dogs⟩')
SELECT to_tsquery('english', '⟨fat & rats¦fat | !cats¦fat <-> rat¦(a | b) & c¦rat:*¦the¦⟩')
SELECT ⟨plainto_tsquery¦phraseto_tsquery¦websearch_to_tsquery⟩('english', 'the fat rats or "big cat" -dog')
SELECT to_tsvector('english', 'a fat cat sat on a mat') @@ to_tsquery('english', '⟨cat & mat¦cat & rat¦fat <-> cat¦cat <2> sat¦!rat⟩')
SELECT 'a:1 b:2 c:3'::tsvector ⟨|| 'd:1 e:2'::tsvector¦@@ 'a & b'::tsquery¦= 'c:3 b:2 a:1'::tsvector⟩
SELECT ⟨length('a b c'::tsvector)¦strip('a:1 b:2'::tsvector)¦setweight('a:1 b:2'::tsvector, 'A')¦numnode('a & b'::tsquery)¦querytree('a & !b'::tsquery)¦ts_delete('a:1 b:2'::tsvector, 'a')¦tsvector_to_array('b a'::tsvector)¦array_to_tsvector(ARRAY['x','y'])⟩
SELECT ts_rank(to_tsvector('english', 'fat cats ate fat rats'), to_tsquery('english', 'fat & rat')), ts_rank_cd(to_tsvector('english', 'fat cats ate fat rats'), to_tsquery('english', 'fat & rat'))
SELECT 'a'::tsquery ⟨&&¦||¦<->⟩ 'b'::tsquery, !! 'a'::tsquery
SELECT ts_headline('english', 'the fat cats ate the rats', to_tsquery('english', 'cat'))
