-- Commands of psql over a schema with keys, checks, defaults, a view and a sequence.
DROP VIEW IF EXISTS ps_view;
DROP TABLE IF EXISTS ps_child;
DROP TABLE IF EXISTS ps;
CREATE TABLE ps (id serial PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, n numeric(8,2) DEFAULT 1.5 CHECK (n > 0));
CREATE TABLE ps_child (ps_id int REFERENCES ps (id) ON DELETE CASCADE, day date, tags text[]);
CREATE INDEX ps_by_day ON ps_child (day DESC, ps_id);
CREATE VIEW ps_view AS SELECT id, name FROM ps WHERE n > 1;
COMMENT ON TABLE ps IS 'things';
INSERT INTO ps (name) VALUES ('a'), ('b');
\d
\d+
\dt
\di+
\dv
\ds
\d ps
\d+ ps
\d ps_child
\d ps_by_day
\d ps_view
\d ps_id_seq
\l
\du
\dn
\dp ps
\df ps*
\dT
\dx
\dd ps
\x on
SELECT * FROM ps ORDER BY id;
\gdesc
\x off
SELECT id, name FROM ps ORDER BY id LIMIT 1 \gset last_
SELECT 'CREATE TABLE ps_made (id int)' \gexec
DROP TABLE ps_made;
COPY ps (name) FROM STDIN;
c
\.
\copy (SELECT name FROM ps ORDER BY id) to pstdout csv header
BEGIN;
SAVEPOINT a;
DELETE FROM ps;
ROLLBACK TO a;
COMMIT;
SELECT count(*) FROM ps;
\conninfo
\encoding
