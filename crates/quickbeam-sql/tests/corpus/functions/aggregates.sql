# Chapter 9.21 and 9.22: aggregate and window functions
CREATE TABLE t (id int, g text, x int, f float8, n numeric, s text, b boolean, d date)
INSERT INTO t VALUES (1,'a',10,1.5,1.10,'p',true,'2020-01-01'),(2,'a',20,2.5,2.20,'q',false,'2020-01-02'),(3,'b',30,NULL,3.30,'r',NULL,'2020-02-01'),(4,'b',NULL,4.5,NULL,NULL,true,NULL),(5,'c',10,5.5,5.55,'p',true,'2021-01-01')
:= c x ¦ f ¦ n
SELECT ⟨sum¦avg¦min¦max¦count¦stddev¦stddev_pop¦stddev_samp¦variance¦var_pop¦var_samp¦any_value¦array_agg¦bit_and¦bit_or¦bit_xor⟩(⟨$c⟩) FROM t
SELECT g, ⟨sum¦avg¦min¦max¦count¦stddev¦array_agg⟩(⟨$c⟩) FROM t GROUP BY g ORDER BY g
SELECT ⟨min¦max¦count⟩(⟨s¦b¦d¦g⟩) FROM t
SELECT ⟨bool_and¦bool_or¦every⟩(b), ⟨string_agg(s, ',' ORDER BY s DESC)¦string_agg(DISTINCT s, '-')¦array_agg(x ORDER BY id)¦array_agg(DISTINCT g)¦sum(DISTINCT x)¦count(DISTINCT s)¦count(*) FILTER (WHERE x > 10)¦json_agg(s)¦jsonb_object_agg(id, s)¦xmlagg(NULL)⟩ FROM t
SELECT ⟨corr¦covar_pop¦covar_samp¦regr_avgx¦regr_avgy¦regr_count¦regr_intercept¦regr_r2¦regr_slope¦regr_sxx¦regr_sxy¦regr_syy⟩(x, f) FROM t
SELECT ⟨percentile_cont(0.5)¦percentile_disc(0.5)¦percentile_cont(ARRAY[0.25,0.75])¦percentile_disc(ARRAY[0.5,1])¦mode()¦percentile_cont(1.5)⟩ WITHIN GROUP (ORDER BY ⟨$c⟩) FROM t
SELECT ⟨rank(15)¦dense_rank(15)¦percent_rank(15)¦cume_dist(15)¦rank(10)⟩ WITHIN GROUP (ORDER BY x) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY d - date '2020-01-01'), percentile_cont(0.5) WITHIN GROUP (ORDER BY (x || ' days')::interval), percentile_disc(0.5) WITHIN GROUP (ORDER BY s) FROM t
SELECT sum(x) FROM t WHERE false
SELECT g, grouping(g), sum(x) FROM t GROUP BY ⟨ROLLUP(g)¦CUBE(g)¦GROUPING SETS ((g), ())¦g⟩ ORDER BY g
SELECT id, ⟨row_number()¦rank()¦dense_rank()¦percent_rank()¦cume_dist()¦ntile(2)¦lag(x)¦lag(x, 1, 0)¦lead(x)¦first_value(x)¦last_value(x)¦nth_value(x, 2)¦sum(x)¦count(*)¦avg(x)¦array_agg(x)⟩ OVER (⟨ORDER BY id¦PARTITION BY g ORDER BY id¦PARTITION BY g¦ORDER BY x¦ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING¦ORDER BY id DESC RANGE UNBOUNDED PRECEDING⟩) FROM t ORDER BY id
SELECT id, sum(x) OVER w, count(*) FILTER (WHERE b) OVER w FROM t WINDOW w AS (ORDER BY id ⟨ROWS¦RANGE¦GROUPS⟩ BETWEEN ⟨1 PRECEDING¦UNBOUNDED PRECEDING¦CURRENT ROW⟩ AND ⟨CURRENT ROW¦1 FOLLOWING¦UNBOUNDED FOLLOWING⟩ ⟨¦EXCLUDE CURRENT ROW¦EXCLUDE TIES¦EXCLUDE GROUP⟩) ORDER BY id
SELECT sum(sum(x)) OVER (ORDER BY g), g FROM t GROUP BY g ORDER BY g
SELECT id, sum(id) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT sum(x ORDER BY id), avg(x) FILTER (WHERE false), max(x) + min(x), sum(x::bigint), avg(n), sum(n) / count(n) FROM t
SELECT x, count(*) FROM t
SELECT sum(count(*)) FROM t
SELECT * FROM t WHERE sum(x) > 1
SELECT g FROM t GROUP BY g HAVING ⟨count(*) > 1¦sum(x) IS NULL¦max(s) = 'p'⟩ ORDER BY g
