"""Django 5.2: migrations of the contrib applications, the ORM, inspectdb."""

import datetime
import decimal
import io
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"],
        "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"], "PASSWORD": os.environ["PGPASSWORD"],
    }},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.admin",
                    "django.contrib.messages"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True, SECRET_KEY="for tests",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Count, F, Q, Sum  # noqa: E402

with connection.cursor() as cursor:
    cursor.execute("DROP TABLE IF EXISTS clients_book")
call_command("migrate", verbosity=0)
call_command("migrate", "auth", "0006", verbosity=0)
call_command("migrate", verbosity=0)

with transaction.atomic():
    Session.objects.all().delete()
    User.objects.all().delete()
    Group.objects.all().delete()
users = User.objects.bulk_create(User(username=f"user{number}", email=f"{number}@example.org") for number in range(20))
group = Group.objects.create(name="readers")
group.user_set.add(*users[:5])
assert User.objects.filter(groups__name="readers").count() == 5
assert User.objects.filter(Q(username__icontains="USER1") & ~Q(username="user1")).count() == 10
assert list(Group.objects.annotate(n=Count("user")).values_list("name", "n")) == [("readers", 5)]
User.objects.filter(pk=users[0].pk).update(first_name=F("username"), last_login=datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc))
assert User.objects.get(pk=users[0].pk).first_name == "user0"
assert User.objects.filter(last_login__year=2026).count() == 1
assert User.objects.dates("date_joined", "month").count() == 1
created = User.objects.get_or_create(username="user0")[1]
assert not created
try:
    with transaction.atomic():
        User.objects.create(username="user0")
    raise AssertionError("no error")
except IntegrityError:
    pass
with transaction.atomic():
    assert len(User.objects.select_for_update().filter(groups=group)) == 5
    assert sum(1 for _ in User.objects.iterator(chunk_size=7)) == 20
User.objects.filter(username__in=["user3", "user4"]).delete()
assert User.objects.count() == 18
Session.objects.update_or_create(session_key="k", defaults={"session_data": "d", "expire_date": datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)})


class Book(models.Model):
    title = models.CharField(max_length=50, db_index=True)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    owner = models.ForeignKey(User, on_delete=models.CASCADE)
    body = models.JSONField(default=dict)
    when = models.DurationField(null=True)

    class Meta:
        app_label = "clients"
        constraints = [models.UniqueConstraint(fields=["title", "owner"], name="one_of_each"),
                       models.CheckConstraint(condition=Q(price__gte=0), name="no_gifts")]


with connection.schema_editor() as editor:
    if "clients_book" in connection.introspection.table_names():
        editor.delete_model(Book)
    editor.create_model(Book)
owner = User.objects.get(username="user1")
Book.objects.create(title="a", price=decimal.Decimal("2.50"), owner=owner, body={"k": [1, 2]}, when=datetime.timedelta(days=1, seconds=2))
Book.objects.create(title="b", price=decimal.Decimal("3.50"), owner=owner, body={"k": 5})
assert Book.objects.aggregate(total=Sum("price"))["total"] == decimal.Decimal("6.00")
assert Book.objects.get(body__k=5).title == "b"
assert Book.objects.select_related("owner").get(title="a").when == datetime.timedelta(days=1, seconds=2)
field = models.CharField(max_length=80, default="", db_default="none")
Book.add_to_class("subtitle", field)
with connection.schema_editor() as editor:
    editor.add_field(Book, field)
    editor.remove_field(Book, Book._meta.get_field("when"))

written = io.StringIO()
call_command("inspectdb", "clients_book", "auth_user", stdout=written)
text = written.getvalue()
for expected in ("title = models.CharField(max_length=50)", "price = models.DecimalField(max_digits=8, decimal_places=2)",
                 "owner = models.ForeignKey('AuthUser', models.DO_NOTHING)", "username = models.CharField(unique=True, max_length=150)",
                 "unique_together = (('title', 'owner'),)"):
    assert expected in text, text
with connection.cursor() as cursor:
    constraints = connection.introspection.get_constraints(cursor, "clients_book")
    assert constraints["no_gifts"]["check"] and constraints["one_of_each"]["columns"] == ["title", "owner_id"], constraints
with connection.schema_editor() as editor:
    editor.delete_model(Book)
