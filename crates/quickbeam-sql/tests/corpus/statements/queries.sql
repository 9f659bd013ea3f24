# Chapter 4.2 and 7: value expressions and queries
CREATE TABLE t (id int PRIMARY KEY, g int, s text, x numeric)
CREATE TABLE u (id int PRIMARY KEY, t_id int REFERENCES t, v text)
INSERT INTO t VALUES (1,1,'one',1.5),(2,1,'two',2.5),(3,2,'three',NULL),(4,NULL,NULL,4.0)
INSERT INTO u VALUES (1,1,'a'),(2,1,'b'),(3,3,'c'),(4,NULL,'d')
:= join JOIN ¦ LEFT JOIN ¦ RIGHT JOIN ¦ FULL JOIN
SELECT t.id, u.id FROM t ⟨$join⟩ u ON t.id = u.t_id ORDER BY 1, 2
SELECT t.id, v FROM t ⟨$join⟩ u USING (id) ORDER BY 1, 2
SELECT * FROM t ⟨NATURAL JOIN¦NATURAL LEFT JOIN¦CROSS JOIN⟩ u ORDER BY 1, 5
SELECT t.id, u.id FROM t ⟨$join⟩ u ON t.id = u.t_id AND u.v > 'a' WHERE ⟨t.g = 1¦u.id IS NULL¦true⟩ ORDER BY 1, 2
SELECT id FROM t WHERE ⟨g = 1¦g IS NULL¦s LIKE 't%'¦x > 2¦g IN (1, NULL)¦g NOT IN (1, NULL)¦id IN (SELECT t_id FROM u)¦id NOT IN (SELECT t_id FROM u)¦EXISTS (SELECT 1 FROM u WHERE t_id = t.id)¦NOT EXISTS (SELECT 1 FROM u WHERE t_id = t.id)¦x > (SELECT avg(x) FROM t)¦id = ANY (SELECT t_id FROM u)¦id > ALL (SELECT t_id FROM u WHERE t_id < 3)¦(id, g) = (1, 1)¦(id, g) IN ((1,1),(3,2))¦id BETWEEN 2 AND 3¦NOT g = 1⟩ ORDER BY id
SELECT g, count(*), sum(x), max(s) FROM t GROUP BY g ⟨ORDER BY g¦ORDER BY g NULLS FIRST¦HAVING count(*) > 1¦ORDER BY count(*) DESC, g¦ORDER BY 2, 1⟩
SELECT ⟨DISTINCT g¦DISTINCT ON (g) g, id¦ALL g⟩ FROM t ORDER BY g
SELECT id FROM t ORDER BY ⟨s¦s DESC¦x NULLS FIRST¦g, id DESC¦id LIMIT 2¦id OFFSET 2¦id LIMIT 1 OFFSET 1¦id FETCH FIRST 2 ROWS ONLY¦g FETCH FIRST 1 ROW WITH TIES¦length(s), id¦-id¦id USING >⟩
SELECT id FROM t ⟨UNION¦UNION ALL¦INTERSECT¦EXCEPT¦INTERSECT ALL¦EXCEPT ALL⟩ SELECT t_id FROM u ORDER BY 1
SELECT ⟨1 UNION SELECT 2.5¦1 UNION SELECT 'a'¦NULL UNION SELECT 1¦'a' UNION SELECT 'b'⟩ ORDER BY 1
WITH a AS (SELECT id FROM t WHERE g = 1), b AS (SELECT count(*) c FROM a) SELECT * FROM a, b ORDER BY 1
WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n), count(*) FROM r
WITH RECURSIVE r(n, p) AS (SELECT 1, '1' UNION SELECT n + 1, p || n FROM r WHERE n < 4) ⟨¦SEARCH DEPTH FIRST BY n SET o ¦CYCLE n SET c USING q ⟩SELECT n, p FROM r ORDER BY n
WITH ins AS (INSERT INTO u VALUES (9, 2, 'z') RETURNING id) SELECT * FROM ins
WITH del AS (DELETE FROM u WHERE id = 9 RETURNING *) SELECT v FROM del
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(n, s) ORDER BY n
VALUES (1, 'a'), (2, 'b') ORDER BY 1 DESC
TABLE u
SELECT t.* FROM t, LATERAL (SELECT * FROM u WHERE u.t_id = t.id LIMIT 1) l ORDER BY 1
SELECT t.id, l.c FROM t LEFT JOIN LATERAL (SELECT count(*) c FROM u WHERE u.t_id = t.id) l ON true ORDER BY 1
SELECT t FROM t ORDER BY id
SELECT (t).s, (t.*) IS NULL FROM t ORDER BY id
SELECT count(*), count(g), count(DISTINCT g), sum(g), avg(g) FROM t
SELECT id, s FROM t GROUP BY id ORDER BY id
SELECT id, (SELECT count(*) FROM u WHERE t_id = t.id), (SELECT max(v) FROM u WHERE t_id = t.id) FROM t ORDER BY id
SELECT g, sum(x) FROM t GROUP BY ROLLUP(g) ORDER BY g
SELECT g, s, count(*) FROM t GROUP BY ⟨GROUPING SETS ((g), (s), ())¦CUBE(g, s)¦ROLLUP(g, s)¦DISTINCT ROLLUP(g), s⟩ ORDER BY g, s
SELECT * FROM t TABLESAMPLE ⟨BERNOULLI (100)¦SYSTEM (100) REPEATABLE (1)⟩ ORDER BY id
SELECT id FROM t WHERE id = 1 FOR ⟨UPDATE¦SHARE¦NO KEY UPDATE¦KEY SHARE¦UPDATE NOWAIT¦UPDATE SKIP LOCKED⟩
SELECT ⟨nosuch FROM t¦* FROM nosuch¦t.nosuch FROM t¦id FROM t, u¦1 FROM t GROUP BY nosuch¦id FROM t GROUP BY g¦1 +¦FROM t¦id FROM t ORDER BY 9¦id FROM t LIMIT -1¦id FROM t WHERE g⟩
SELECT a.id AS "Id x", b.id AS b FROM t a JOIN t b ON a.g = b.g AND a.id < b.id ORDER BY 1, 2
SELECT sum(id) FILTER (WHERE g = 1), string_agg(s, ',' ORDER BY id), array_agg(id ORDER BY id DESC) FROM t
SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(a, n)
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a','b'])) AS r(n, s)
SELECT t.id FROM ONLY t WHERE id < 3 ORDER BY id
SELECT CASE WHEN g = 1 THEN 'g1' WHEN g IS NULL THEN 'none' ELSE 'other' END AS c, count(*) FROM t GROUP BY c ORDER BY c
SELECT CAST(id AS text) || ':' || coalesce(s, '-') FROM t ORDER BY id
SELECT $1
SELECT 1 AS a, 2 AS a, 3
SELECT
SELECT ⟨cast('2020-01-01' as date)¦date '2020-01-01'¦'5'::int + 1¦int '5'¦ARRAY[1,2][2]¦(ARRAY[[1,2],[3,4]])[2][1]¦(SELECT 5)¦ROW(1,2)¦NOT true = false¦1 < 2 = true¦2 + 3 * 4 ^ 2¦-3 ^ 2¦5 - 3 - 1¦'a' || 'b' = 'ab'¦1 IS NULL = false¦NOT 1 IN (2)¦1 = 1 AND 2 = 2 OR false⟩
SELECT id AS i FROM t WHERE i = 1
SELECT DISTINCT g FROM t ORDER BY id
SELECT x.* FROM (SELECT id, s FROM t) x WHERE x.id = 2
SELECT (x).a FROM (SELECT ROW(1, 2) x) q
SELECT * FROM t WHERE s = 'one' AND g = 1 OR id = 4 ORDER BY id
SELECT lower(s) AS l FROM t WHERE s IS NOT NULL GROUP BY l ORDER BY l
SELECT concat_ws('-', t.id, u.id) FROM t, u WHERE t.id = u.id ORDER BY 1
SELECT id, g FROM t WHERE (g, id) > (1, 1) ORDER BY id
SELECT * FROM t JOIN u ON u.t_id = t.id AND EXISTS (SELECT 1) ORDER BY 1, 5
