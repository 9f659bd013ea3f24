// Hibernate: schema creation, update and validation, sequences and identity columns, relations,
// enums, JSON, arrays, embedded values, batches, HQL, locks, optimistic versions.

import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

public class HibernateClient {
    public enum Size { SMALL, LARGE }

    @Embeddable
    public static class Address {
        String street;
        String city;
    }

    @Entity(name = "Customer")
    @Table(name = "hib_customer", indexes = @Index(name = "hib_customer_name", columnList = "name"))
    public static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Column(length = 60, nullable = false, unique = true) String name;
        @Embedded Address address = new Address();
        @Enumerated(EnumType.STRING) Size size;
        @Version int version;
        OffsetDateTime since;
        @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true)
        List<Purchase> purchases = new ArrayList<>();
        @JdbcTypeCode(SqlTypes.JSON) Map<String, String> notes = new HashMap<>();
    }

    @Entity(name = "Purchase")
    @Table(name = "hib_purchase")
    public static class Purchase {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) Customer customer;
        @Column(precision = 10, scale = 2) BigDecimal amount;
        LocalDate day;
        LocalTime hour;
        boolean paid;
        UUID reference;
        byte[] receipt;
        List<String> tags = new ArrayList<>();
        @Column(length = 100000) String text;
    }

    static void check(boolean ok, Object what) {
        if (!ok) throw new AssertionError(String.valueOf(what));
    }

    static SessionFactory factory(String schema) {
        Properties properties = new Properties();
        properties.put("hibernate.connection.url", "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"));
        properties.put("hibernate.connection.username", System.getenv("PGUSER"));
        properties.put("hibernate.connection.password", System.getenv("PGPASSWORD"));
        properties.put("hibernate.hbm2ddl.auto", schema);
        properties.put("hibernate.jdbc.batch_size", "20");
        properties.put("hibernate.order_inserts", "true");
        return new Configuration().addProperties(properties).addAnnotatedClass(Customer.class)
                .addAnnotatedClass(Purchase.class).buildSessionFactory();
    }

    public static void main(String[] arguments) {
        try (SessionFactory factory = factory("create")) {
            factory.inTransaction(HibernateClient::fill);
            factory.inTransaction(HibernateClient::query);
            versions(factory);
        }
        factory("update").close();
        factory("validate").close();
        factory("create-drop").close();
    }

    static void fill(Session session) {
        for (int n = 0; n < 50; n++) {
            Customer customer = new Customer();
            customer.name = "customer " + n;
            customer.address.city = n % 2 == 0 ? "Bonn" : "Köln";
            customer.size = n % 5 == 0 ? Size.LARGE : Size.SMALL;
            customer.since = OffsetDateTime.of(2026, 1, 1 + n % 28, 12, 0, 0, 0, ZoneOffset.UTC);
            customer.notes.put("key", "value " + n);
            for (int m = 0; m < n % 4; m++) {
                Purchase purchase = new Purchase();
                purchase.customer = customer;
                purchase.amount = new BigDecimal(n + "." + (10 + m));
                purchase.day = LocalDate.of(2026, 2, 1 + m);
                purchase.hour = LocalTime.of(8, 30, m);
                purchase.paid = m == 0;
                purchase.reference = UUID.randomUUID();
                purchase.receipt = new byte[] {1, 2, (byte) m};
                purchase.tags.add("tag " + m);
                purchase.text = "a long text";
                customer.purchases.add(purchase);
            }
            session.persist(customer);
        }
    }

    static void query(Session session) {
        Customer one = session.createQuery("from Customer where name = :name", Customer.class)
                .setParameter("name", "customer 7").getSingleResult();
        check(one.purchases.size() == 3 && one.notes.get("key").equals("value 7"), one.notes);
        check(one.purchases.get(0).receipt.length == 3 && one.purchases.get(0).text.equals("a long text"), "purchase");
        List<Object[]> groups = session.createQuery(
                "select c.address.city, count(distinct c), sum(p.amount) from Customer c left join c.purchases p "
                + "group by c.address.city having count(p) > 3 order by c.address.city", Object[].class).list();
        check(groups.size() == 2 && groups.get(0)[1].equals(25L), groups.size());
        List<String> page = session.createQuery(
                "select c.name from Customer c where c.size = :size and exists (from Purchase p where p.customer = c) order by c.name", String.class)
                .setParameter("size", Size.LARGE).setFirstResult(1).setMaxResults(3).list();
        check(page.size() == 3, page);
        check(session.createQuery("select p from Purchase p join fetch p.customer where p.day between :a and :b and p.paid", Purchase.class)
                .setParameter("a", LocalDate.of(2026, 2, 1)).setParameter("b", LocalDate.of(2026, 2, 28)).list().size() == 37, "paid");
        List<Object[]> ranks = session.createQuery(
                "select c.name, rank() over (partition by c.address.city order by c.id desc) from Customer c order by c.id", Object[].class).list();
        check(ranks.size() == 50 && ranks.get(49)[1].equals(1L), ranks.get(49)[1]);
        check(session.createMutationQuery("update Purchase set paid = true where amount > 40").executeUpdate() > 0, "update");
        check(session.createMutationQuery("delete from Purchase where amount < 5").executeUpdate() > 0, "delete");
        Customer locked = session.find(Customer.class, one.id, LockModeType.PESSIMISTIC_WRITE);
        check(locked == one, "lock");
        check(((Number) session.createNativeQuery("select count(*) from hib_customer where notes ->> 'key' like 'value%'", Object.class)
                .getSingleResult()).intValue() == 50, "json");
    }

    /** Of two sessions that change one row the second fails. */
    static void versions(SessionFactory factory) {
        try (Session first = factory.openSession(); Session second = factory.openSession()) {
            Customer mine = first.find(Customer.class, 1L);
            Customer theirs = second.find(Customer.class, 1L);
            first.beginTransaction();
            mine.address.street = "one";
            first.getTransaction().commit();
            second.beginTransaction();
            theirs.address.street = "two";
            boolean failed = false;
            try {
                second.getTransaction().commit();
            } catch (RuntimeException error) {
                failed = true;
            }
            check(failed, "a stale version was written");
        }
        factory.inTransaction(session -> {
            Customer customer = session.find(Customer.class, 4L);
            customer.purchases.clear();
            session.remove(session.find(Customer.class, 5L));
        });
        boolean failed = false;
        try {
            factory.inTransaction(session -> {
                Customer twin = new Customer();
                twin.name = "customer 7";
                session.persist(twin);
            });
        } catch (org.hibernate.exception.ConstraintViolationException error) {
            failed = error.getSQLState().equals("23505");
        }
        check(failed, "a second customer of the name was stored");
    }
}
