-- A foreign server that is Quickbeam.
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'host', port :'port', dbname :'database', fetch_size '7');
CREATE USER MAPPING FOR CURRENT_USER SERVER other OPTIONS (user :'user', password :'password');
IMPORT FOREIGN SCHEMA public LIMIT TO (fdw_item) FROM SERVER other INTO public;
\d fdw_item
INSERT INTO fdw_item SELECT g, 'name ' || g, g + 0.5 FROM generate_series(1, 50) g;
UPDATE fdw_item SET n = n + 1 WHERE id <= 10;
DELETE FROM fdw_item WHERE id > 40;
DO $$
BEGIN
    ASSERT (SELECT count(*) FROM fdw_item) = 40;
    ASSERT (SELECT sum(n) FROM fdw_item WHERE id <= 10) = 70;
    ASSERT (SELECT name FROM fdw_item WHERE id = 7) = 'name 7';
    ASSERT (SELECT count(*) FROM fdw_item a JOIN fdw_item b USING (id)) = 40;
END $$;
BEGIN;
DELETE FROM fdw_item;
ROLLBACK;
DO $$ BEGIN ASSERT (SELECT count(*) FROM fdw_item) = 40; END $$;
