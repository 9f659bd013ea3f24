"""SQLAlchemy 2 over psycopg 3: Core, ORM, reflection of tables, keys, indexes and views."""

import datetime
import decimal
import uuid

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

engine = sa.create_engine("postgresql+psycopg://", pool_size=2)


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "sa_author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), unique=True)
    born: Mapped[datetime.date | None]
    books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "sa_book"
    __table_args__ = (sa.CheckConstraint("price >= 0", name="price_is_positive"),)
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("sa_author.id", ondelete="CASCADE"), index=True)
    title: Mapped[str] = mapped_column(sa.Text, comment="as printed")
    price: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(8, 2), server_default="0")
    tags: Mapped[list[str]] = mapped_column(pg.ARRAY(sa.Text), default=list)
    extra: Mapped[dict] = mapped_column(pg.JSONB, default=dict)
    author: Mapped[Author] = relationship(back_populates="books")


Base.metadata.drop_all(engine)
Base.metadata.create_all(engine)
Base.metadata.create_all(engine)

with Session(engine) as session:
    session.add_all([
        Author(id=10 + number, name=f"author {number}", born=datetime.date(1900, 1, 1 + number),
               books=[Book(title=f"book {number}.{part}", price=decimal.Decimal(part), tags=["a", "b"],
                           extra={"part": part}) for part in range(3)])
        for number in range(4)
    ])
    session.add(Author(name="numbered by the sequence"))
    session.commit()
    query = sa.select(Author).options(selectinload(Author.books)).order_by(Author.id)
    found = session.scalars(query).all()
    assert [len(one.books) for one in found] == [0, 3, 3, 3, 3], [len(one.books) for one in found]
    sums = session.execute(
        sa.select(Author.name, sa.func.sum(Book.price).label("total"))
        .join(Author.books).group_by(Author.name).having(sa.func.count() > 2).order_by("name")
    ).all()
    assert sums[0] == ("author 0", decimal.Decimal("3.00")), sums
    ranked = sa.select(Book.title, sa.func.row_number().over(partition_by=Book.author_id, order_by=Book.price.desc()).label("r"))
    ranked = ranked.subquery()
    best = session.scalars(sa.select(ranked.c.title).where(ranked.c.r == 1).order_by(ranked.c.title)).all()
    assert best[0] == "book 0.2", best
    first = session.scalars(sa.select(Book).where(Book.extra["part"].astext == "2").limit(1)).one()
    assert first.extra == {"part": 2} and first.tags == ["a", "b"]
    session.execute(sa.update(Book).where(Book.title.like("book 1.%")).values(price=Book.price + 1))
    session.delete(found[-1])
    session.commit()
    assert session.scalar(sa.select(sa.func.count()).select_from(Book)) == 9
    with session.begin_nested() as savepoint:
        session.execute(sa.delete(Book))
        savepoint.rollback()
    assert session.scalar(sa.select(sa.func.count(Book.id))) == 9

with engine.begin() as connection:
    insert = pg.insert(Author.__table__).values(id=11, name="again")
    connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_={"name": insert.excluded.name}))
    returned = connection.execute(sa.insert(Author.__table__).returning(Author.__table__.c.id), [{"name": "x"}, {"name": "y"}])
    assert len(returned.all()) == 2
    connection.execute(sa.text("CREATE OR REPLACE VIEW sa_view AS SELECT id, name FROM sa_author"))

with engine.connect().execution_options(stream_results=True, max_row_buffer=5) as connection:
    assert len(connection.execute(sa.select(Book.title)).all()) == 9

inspector = sa.inspect(engine)
assert {"sa_author", "sa_book"} <= set(inspector.get_table_names()), inspector.get_table_names()
assert "sa_view" in inspector.get_view_names()
columns = {one["name"]: one for one in inspector.get_columns("sa_book")}
assert isinstance(columns["price"]["type"], sa.Numeric) and columns["price"]["type"].precision == 8
assert isinstance(columns["tags"]["type"], pg.ARRAY) and isinstance(columns["extra"]["type"], pg.JSONB)
assert columns["title"]["comment"] == "as printed" and not columns["title"]["nullable"]
assert inspector.get_pk_constraint("sa_book")["constrained_columns"] == ["id"]
[key] = inspector.get_foreign_keys("sa_book")
assert key["referred_table"] == "sa_author" and key["options"] == {"ondelete": "CASCADE"}, key
assert [one["name"] for one in inspector.get_indexes("sa_book")] == ["ix_sa_book_author_id"]
assert [one["column_names"] for one in inspector.get_unique_constraints("sa_author")] == [["name"]]
[check] = inspector.get_check_constraints("sa_book")
assert check["name"] == "price_is_positive", check
reflected = sa.MetaData()
reflected.reflect(engine, only=["sa_author", "sa_book"])
assert reflected.tables["sa_book"].c.author_id.references(reflected.tables["sa_author"].c.id)
with engine.begin() as connection:
    connection.execute(sa.text("DROP VIEW sa_view"))
Base.metadata.drop_all(engine)
