// Flyway: versioned and repeatable migrations, a failing one, validation, info, clean.

import java.nio.file.*;
import java.sql.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;

public class FlywayClient {
    static void check(boolean ok, Object what) {
        if (!ok) throw new AssertionError(String.valueOf(what));
    }

    static void write(Path folder, String name, String text) throws Exception {
        Files.writeString(folder.resolve(name), text);
    }

    static Flyway flyway(Path folder) {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        return Flyway.configure().dataSource(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))
                .locations("filesystem:" + folder).schemas("fly").cleanDisabled(false).load();
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("flyway");
        write(folder, "V1__items.sql", "CREATE TABLE item (id serial PRIMARY KEY, name varchar(20) NOT NULL);\n"
                + "CREATE INDEX item_name ON item (name);\nINSERT INTO item (name) VALUES ('a'), ('b');\n");
        write(folder, "V2__more.sql", "ALTER TABLE item ADD COLUMN price numeric(8,2) DEFAULT 1.5;\n"
                + "CREATE FUNCTION total() RETURNS numeric AS $$ SELECT sum(price) FROM item $$ LANGUAGE sql;\n"
                + "CREATE TYPE mood AS ENUM ('sad', 'ok');\nCREATE DOMAIN positive AS int CHECK (VALUE > 0);\n"
                + "CREATE SEQUENCE numbers;\n");
        write(folder, "R__view.sql", "CREATE OR REPLACE VIEW dear AS SELECT * FROM item WHERE price > 1;\n");
        Flyway flyway = flyway(folder);
        flyway.clean();
        check(flyway.migrate().migrationsExecuted == 3, "three migrations");
        check(flyway.migrate().migrationsExecuted == 0, "none twice");
        flyway.validate();
        check(flyway.info().applied().length >= 3, flyway.info().applied().length);
        write(folder, "V3__broken.sql", "CREATE TABLE fine (id int);\nCREATE TABLE item (id int);\n");
        boolean failed = false;
        try {
            flyway.migrate();
        } catch (FlywayException error) {
            failed = true;
        }
        check(failed, "a broken migration passed");
        Files.delete(folder.resolve("V3__broken.sql"));
        write(folder, "V3__mended.sql", "CREATE TABLE fine (id int);\n");
        check(flyway.migrate().migrationsExecuted == 1, "the mended one");
        write(folder, "V1__items.sql", "SELECT 1;\n");
        failed = false;
        try {
            flyway.validate();
        } catch (FlywayException error) {
            failed = true;
        }
        check(failed, "a changed migration is valid");
        flyway.clean();
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        try (Connection db = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
                ResultSet left = db.createStatement().executeQuery("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fly'")) {
            check(left.next() && left.getInt(1) == 0, left.getInt(1));
        }
    }
}
