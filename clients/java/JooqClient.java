// jOOQ: tables made and read by its DSL, upserts, RETURNING, MULTISET, windows, CTEs, batches,
// optimistic records, metadata.

import static org.jooq.impl.DSL.*;
import static org.jooq.impl.SQLDataType.*;

import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.jooq.*;
import org.jooq.Record;
import org.jooq.impl.DSL;

public class JooqClient {
    static void expect(boolean ok, Object what) {
        if (!ok) throw new AssertionError(String.valueOf(what));
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        try (Connection db = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            DSLContext ctx = DSL.using(db, SQLDialect.POSTGRES);
            definitions(ctx);
            changes(ctx);
            queries(ctx);
            metadata(ctx);
            transactions(ctx);
        }
    }

    static final Table<?> AUTHOR = table(name("jq_author")), BOOK = table(name("jq_book"));
    static final Field<Integer> AUTHOR_ID = field(name("jq_author", "id"), INTEGER), BOOK_AUTHOR = field(name("jq_book", "author"), INTEGER);
    static final Field<String> AUTHOR_NAME = field(name("jq_author", "name"), VARCHAR(40)), TITLE = field(name("jq_book", "title"), VARCHAR(80));
    static final Field<BigDecimal> PRICE = field(name("jq_book", "price"), NUMERIC(8, 2));
    static final Field<LocalDate> DAY = field(name("jq_book", "day"), LOCALDATE);

    static void definitions(DSLContext ctx) {
        ctx.dropTableIfExists(BOOK).cascade().execute();
        ctx.dropTableIfExists(AUTHOR).cascade().execute();
        ctx.createTable(AUTHOR).column("id", INTEGER.identity(true)).column("name", VARCHAR(40).nullable(false))
                .column("notes", JSONB).constraints(primaryKey("id"), unique("name")).execute();
        ctx.createTable(BOOK).column("id", BIGINT.identity(true)).column("author", INTEGER.nullable(false))
                .column("title", VARCHAR(80)).column("price", NUMERIC(8, 2).defaultValue(new BigDecimal("9.90")))
                .column("day", LOCALDATE).column("tags", VARCHAR.array())
                .constraints(primaryKey("id"), constraint("jq_book_author").foreignKey("author").references("jq_author", "id").onDeleteCascade(),
                        DSL.check(field(name("price"), NUMERIC).ge(inline(BigDecimal.ZERO)))).execute();
        ctx.createIndex("jq_book_title").on(BOOK, field(name("title"))).execute();
        ctx.alterTable(BOOK).addColumn("pages", INTEGER.defaultValue(100)).execute();
        ctx.commentOnTable(BOOK).is("books").execute();
    }

    static void changes(DSLContext ctx) {
        for (int n = 1; n <= 10; n++) {
            Record row = ctx.insertInto(AUTHOR).columns(field(name("name"), VARCHAR), field(name("notes"), JSONB))
                    .values("author " + n, org.jooq.JSONB.jsonb("{\"n\": " + n + "}")).returning(field(name("id"), INTEGER)).fetchOne();
            expect(row.get(0, Integer.class) == n, row);
        }
        List<Query> batch = new ArrayList<>();
        for (int n = 0; n < 40; n++) {
            batch.add(ctx.insertInto(BOOK).columns(field(name("author")), field(name("title")), field(name("price")), field(name("day")), field(name("tags")))
                    .values(1 + n % 8, "title " + n, new BigDecimal(n), LocalDate.of(2026, 1, 1 + n % 28), new String[] {"a", "b" + n}));
        }
        expect(ctx.batch(batch).execute().length == 40, "batch");
        ctx.insertInto(AUTHOR).columns(field(name("name"), VARCHAR)).values("author 3").onConflict(field(name("name"))).doNothing().execute();
        Integer changed = ctx.insertInto(AUTHOR).columns(field(name("name"), VARCHAR), field(name("notes"), JSONB)).values("author 3", org.jooq.JSONB.jsonb("{}"))
                .onConflict(field(name("name"))).doUpdate().set(field(name("notes"), JSONB), excluded(field(name("notes"), JSONB))).execute();
        expect(changed == 1, changed);
        expect(ctx.update(BOOK).set(field(name("price"), NUMERIC), field(name("price"), NUMERIC).plus(1))
                .where(DAY.lt(LocalDate.of(2026, 1, 10))).returning(field(name("id"))).fetch().size() > 0, "update");
        expect(ctx.mergeInto(AUTHOR).using(selectOne()).on(AUTHOR_NAME.eq("author 4")).whenMatchedThenUpdate()
                .set(field(name("notes"), JSONB), org.jooq.JSONB.jsonb("[1]")).whenNotMatchedThenInsert(field(name("name"), VARCHAR)).values("author 4").execute() == 1, "merge");
        expect(ctx.deleteFrom(BOOK).where(field(name("title"), VARCHAR).like("title 3_")).execute() == 10, "delete");
    }

    static void queries(DSLContext ctx) {
        Result<? extends Record> nested = ctx.select(AUTHOR_NAME, multiset(select(TITLE, PRICE).from(BOOK).where(BOOK_AUTHOR.eq(AUTHOR_ID)).orderBy(TITLE)).as("books"))
                .from(AUTHOR).orderBy(AUTHOR_ID).fetch();
        expect(nested.size() == 10 && ((Result<?>) nested.get(0).get("books")).size() > 2, nested);
        Table<?> ranked = table(select(TITLE, rowNumber().over(partitionBy(BOOK_AUTHOR).orderBy(PRICE.desc())).as("n"),
                sum(PRICE).over(partitionBy(BOOK_AUTHOR)).as("total")).from(BOOK)).as("ranked");
        Result<? extends Record> ranks = ctx.selectFrom(ranked).where(field(name("n"), INTEGER).eq(1)).fetch();
        expect(ranks.size() == 8, ranks.size());
        CommonTableExpression<Record1<Integer>> numbers = name("numbers").fields("n").as(select(inline(1))
                .unionAll(select(field(name("n"), INTEGER).plus(1)).from(table(name("numbers"))).where(field(name("n"), INTEGER).lt(10))));
        expect(ctx.withRecursive(numbers).select(sum(field(name("n"), INTEGER))).from(numbers).fetchOne(0, int.class) == 55, "recursive");
        expect(ctx.fetchCount(select(AUTHOR_ID).from(AUTHOR).leftJoin(BOOK).on(BOOK_AUTHOR.eq(AUTHOR_ID)).where(BOOK_AUTHOR.isNull())) == 2, "left join");
        Map<String, List<BigDecimal>> groups = ctx.select(AUTHOR_NAME, PRICE).from(AUTHOR).join(BOOK).on(BOOK_AUTHOR.eq(AUTHOR_ID)).fetchGroups(AUTHOR_NAME, PRICE);
        expect(groups.size() == 8, groups.size());
        expect(ctx.select(listAgg(TITLE, ",").withinGroupOrderBy(TITLE), stddevPop(PRICE), median(PRICE), mode().withinGroupOrderBy(PRICE)).from(BOOK).fetchOne().size() == 4, "aggregates");
        expect(ctx.selectDistinct(BOOK_AUTHOR).on(BOOK_AUTHOR).from(BOOK).orderBy(BOOK_AUTHOR, PRICE).limit(3).offset(1).fetch().size() == 3, "distinct on");
        expect(ctx.select(row(AUTHOR_ID, AUTHOR_NAME)).from(AUTHOR).where(row(AUTHOR_ID, AUTHOR_NAME).in(row(1, "author 1"), row(2, "author 2"))).fetch().size() == 2, "rows");
        expect(ctx.select(jsonObjectAgg(AUTHOR_NAME, AUTHOR_ID), jsonArrayAgg(AUTHOR_ID).orderBy(AUTHOR_ID)).from(AUTHOR).fetchOne().value1() != null, "json");
        expect(ctx.selectFrom(generateSeries(1, 20)).fetch().size() == 20, "series");
        expect(ctx.select(localDateAdd(DAY, 3, DatePart.DAY), extract(DAY, DatePart.MONTH), trunc(DAY, DatePart.MONTH)).from(BOOK).limit(1).fetchOne() != null, "dates");
        try (Cursor<? extends Record> cursor = ctx.select(TITLE).from(BOOK).fetchSize(5).fetchLazy()) {
            int n = 0;
            while (cursor.fetchNext() != null) n++;
            expect(n == 30, n);
        }
    }

    static void metadata(DSLContext ctx) {
        List<Table<?>> tables = ctx.meta().getTables("jq_book");
        expect(tables.size() == 1, tables);
        Table<?> book = tables.get(0);
        expect(book.fields().length == 7 && book.getPrimaryKey() != null && book.getReferences().size() == 1, book.fields().length);
        expect(book.getIndexes().stream().anyMatch(index -> index.getName().equals("jq_book_title")), book.getIndexes());
        expect(ctx.meta().filterTables(table -> table.getName().startsWith("jq_")).ddl().queries().length > 2, "ddl");
    }

    static void transactions(DSLContext ctx) {
        ctx.transaction(outer -> {
            DSL.using(outer).update(BOOK).set(field(name("pages")), (Object) 1).execute();
            try {
                DSL.using(outer).transaction(inner -> {
                    DSL.using(inner).deleteFrom(BOOK).execute();
                    throw new IllegalStateException("back");
                });
            } catch (IllegalStateException expected) {
                expect(DSL.using(outer).fetchCount(BOOK) == 30, "savepoint");
            }
        });
        try {
            ctx.insertInto(BOOK).columns(field(name("author"))).values(99).execute();
            expect(false, "a foreign key was not checked");
        } catch (org.jooq.exception.IntegrityConstraintViolationException error) {
            expect(error.sqlState().equals("23503"), error.sqlState());
        }
    }
}
