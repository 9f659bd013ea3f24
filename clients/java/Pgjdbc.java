// pgjdbc and HikariCP: types, batches, fetch size, savepoints, metadata, COPY, updatable results.

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.postgresql.PGConnection;

public class Pgjdbc {
    static void check(boolean ok, Object what) {
        if (!ok) throw new AssertionError(String.valueOf(what));
    }

    static List<String> names(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) found.add(rows.getString(column));
        rows.close();
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        for (String mode : new String[] {"extended", "simple", "extendedForPrepared", "extendedCacheEverything"}) {
            Properties properties = new Properties();
            properties.setProperty("user", System.getenv("PGUSER"));
            properties.setProperty("password", System.getenv("PGPASSWORD"));
            properties.setProperty("preferQueryMode", mode);
            properties.setProperty("autosave", "conservative");
            try (Connection db = DriverManager.getConnection(url, properties)) {
                session(db);
            }
        }
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername(System.getenv("PGUSER"));
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(3);
        config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
        try (HikariDataSource pool = new HikariDataSource(config)) {
            for (int i = 0; i < 10; i++) {
                try (Connection db = pool.getConnection(); Statement statement = db.createStatement();
                        ResultSet row = statement.executeQuery("SHOW transaction_isolation")) {
                    check(row.next() && row.getString(1).equals("repeatable read"), row.getString(1));
                }
            }
        }
    }

    static void session(Connection db) throws Exception {
        Statement statement = db.createStatement();
        statement.execute("DROP TABLE IF EXISTS jd_child");
        statement.execute("DROP TABLE IF EXISTS jd");
        statement.execute("CREATE TABLE jd (id int PRIMARY KEY, name varchar(20) NOT NULL, n numeric(8,2), d date, t timestamp, ok boolean, raw bytea, list int[], big bigint)");
        statement.execute("CREATE TABLE jd_child (id serial PRIMARY KEY, jd_id int REFERENCES jd (id) ON DELETE CASCADE)");
        statement.execute("CREATE INDEX jd_by_name ON jd (name)");
        PreparedStatement insert = db.prepareStatement("INSERT INTO jd VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
        for (int i = 1; i <= 50; i++) {
            insert.setInt(1, i);
            insert.setString(2, "name " + i);
            insert.setBigDecimal(3, new BigDecimal(i + ".5"));
            insert.setObject(4, LocalDate.of(2024, 2, 29));
            insert.setTimestamp(5, Timestamp.valueOf("2024-02-29 01:02:03"));
            insert.setBoolean(6, i % 2 == 0);
            insert.setBytes(7, new byte[] {0, (byte) 255});
            insert.setArray(8, db.createArrayOf("int4", new Integer[] {i, null}));
            insert.setLong(9, 1L << 40);
            insert.addBatch();
        }
        check(insert.executeBatch().length == 50, "batch");
        PreparedStatement select = db.prepareStatement("SELECT * FROM jd WHERE id = ?");
        for (int i = 1; i <= 8; i++) { // Beyond the fifth execution the driver asks for binary.
            select.setInt(1, i);
            ResultSet row = select.executeQuery();
            check(row.next() && row.getString("name").equals("name " + i), "name");
            check(row.getBigDecimal("n").equals(new BigDecimal(i + ".50")), row.getBigDecimal("n"));
            check(row.getObject("d", LocalDate.class).equals(LocalDate.of(2024, 2, 29)), "date");
            check(row.getTimestamp("t").equals(Timestamp.valueOf("2024-02-29 01:02:03")), "timestamp");
            check(row.getBytes("raw")[1] == (byte) 255 && row.getLong("big") == 1L << 40, "bytes");
            check(((Integer[]) row.getArray("list").getArray())[0] == i, "array");
        }
        db.setAutoCommit(false);
        statement.setFetchSize(7);
        ResultSet rows = statement.executeQuery("SELECT id FROM jd ORDER BY id");
        int count = 0;
        PreparedStatement update = db.prepareStatement("UPDATE jd SET n = n + 1 WHERE id = ?");
        while (rows.next()) {
            update.setInt(1, rows.getInt(1));
            count += update.executeUpdate();
        }
        check(count == 50, count);
        db.commit();
        Savepoint savepoint = db.setSavepoint();
        statement.executeUpdate("DELETE FROM jd");
        db.rollback(savepoint);
        try {
            statement.executeUpdate("INSERT INTO jd (id, name) VALUES (1, 'x')");
            check(false, "no error");
        } catch (SQLException error) {
            check(error.getSQLState().equals("23505"), error.getSQLState());
        }
        db.rollback();
        db.setAutoCommit(true);
        statement.setFetchSize(0);
        PreparedStatement keys = db.prepareStatement("INSERT INTO jd_child (jd_id) VALUES (?)", Statement.RETURN_GENERATED_KEYS);
        keys.setInt(1, 1);
        keys.executeUpdate();
        ResultSet key = keys.getGeneratedKeys();
        check(key.next() && key.getInt("id") == 1, "key");
        Statement updatable = db.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
        ResultSet cursor = updatable.executeQuery("SELECT id, name FROM jd WHERE id = 2");
        check(cursor.next(), "row");
        cursor.updateString("name", "changed");
        cursor.updateRow();
        check(names(statement.executeQuery("SELECT name FROM jd WHERE id = 2"), "name").equals(List.of("changed")), "update");
        ResultSetMetaData described = statement.executeQuery("SELECT id, name, n FROM jd LIMIT 0").getMetaData();
        check(described.isNullable(2) == ResultSetMetaData.columnNoNulls && described.getPrecision(2) == 20, "nullable");
        check(described.getPrecision(3) == 8 && described.getScale(3) == 2, "precision");
        DatabaseMetaData about = db.getMetaData();
        check(about.getDatabaseMajorVersion() == 15, about.getDatabaseProductVersion());
        check(names(about.getTables(null, "public", "jd%", new String[] {"TABLE"}), "TABLE_NAME").equals(List.of("jd", "jd_child")), "tables");
        check(names(about.getColumns(null, "public", "jd_child", "%"), "COLUMN_NAME").equals(List.of("id", "jd_id")), "columns");
        check(names(about.getPrimaryKeys(null, "public", "jd"), "COLUMN_NAME").equals(List.of("id")), "key");
        check(names(about.getImportedKeys(null, "public", "jd_child"), "FKCOLUMN_NAME").equals(List.of("jd_id")), "imported");
        check(names(about.getExportedKeys(null, "public", "jd"), "FKTABLE_NAME").equals(List.of("jd_child")), "exported");
        check(names(about.getIndexInfo(null, "public", "jd", false, false), "INDEX_NAME").contains("jd_by_name"), "indexes");
        check(names(about.getSchemas(), "TABLE_SCHEM").contains("public"), "schemas");
        check(names(about.getTypeInfo(), "TYPE_NAME").contains("int4"), "types");
        about.getProcedures(null, null, "%").close();
        about.getFunctions(null, null, "no%").close();
        check(!about.getSQLKeywords().isEmpty(), "keywords");
        about.getTablePrivileges(null, "public", "jd").close();
        about.getBestRowIdentifier(null, "public", "jd", DatabaseMetaData.bestRowSession, false).close();
        long copied = db.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY jd (id, name) FROM STDIN", new StringReader("100\ta\n101\tb\n"));
        check(copied == 2, copied);
        db.setReadOnly(true);
        db.setReadOnly(false);
        db.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        check(db.getTransactionIsolation() == Connection.TRANSACTION_SERIALIZABLE, "isolation");
        check(db.isValid(5), "valid");
        check(db.getSchema().equals("public") && db.getCatalog() != null, "schema");
    }
}
