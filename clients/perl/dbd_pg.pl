# DBD::Pg: placeholders, types, COPY, savepoints, errors, metadata.
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:pg_types);

sub check { my ($what, $ok) = @_; die "$what\n" unless $ok; }

my $db = DBI->connect("dbi:Pg:", undef, undef, { RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1 });
$db->do("DROP TABLE IF EXISTS dp");
$db->do("CREATE TABLE dp (id int PRIMARY KEY, name varchar(20), raw bytea, n numeric(8,2), list int[])");
my $insert = $db->prepare("INSERT INTO dp VALUES (?, ?, ?, ?, ?)");
$insert->bind_param(3, undef, { pg_type => PG_BYTEA });
$insert->execute($_, "name $_", "\0\xff$_", "$_.5", [ $_, undef ]) for 1 .. 5;
my $row = $db->selectrow_hashref("SELECT * FROM dp WHERE id = ?", undef, 2);
check("row", $row->{name} eq "name 2" && $row->{raw} eq "\0\xff2" && $row->{n} eq "2.50");
check("array", $row->{list}[0] == 2 && !defined $row->{list}[1]);
eval { $db->do("INSERT INTO dp (id) VALUES (1)") };
check("state", $db->state eq "23505");
$db->begin_work;
$db->do("DELETE FROM dp WHERE id = 1");
$db->pg_savepoint("s");
eval { $db->do("SELECT nothing") };
check("undefined column", $db->state eq "42703");
$db->pg_rollback_to("s");
check("rows", $db->selectrow_array("SELECT count(*) FROM dp") == 4);
$db->rollback;
$db->do("COPY dp (id, name) FROM STDIN");
$db->pg_putcopydata("10\tten\n");
$db->pg_putcopydata("11\t\\N\n");
$db->pg_putcopyend();
$db->do("COPY (SELECT id, name FROM dp WHERE id >= 10 ORDER BY id) TO STDOUT");
my ($text, $line) = ("", "");
$text .= $line while $db->pg_getcopydata(\$line) >= 0;
check("copy", $text eq "10\tten\n11\t\\N\n");
my @tables = $db->tables(undef, "public", "dp", "TABLE");
check("tables @tables", "@tables" eq "public.dp");
my $columns = $db->column_info(undef, "public", "dp", "%")->fetchall_arrayref({});
check("columns", join(",", map { $_->{COLUMN_NAME} } @$columns) eq "id,name,raw,n,list");
check("key", join(",", $db->primary_key(undef, "public", "dp")) eq "id");
$db->do("LISTEN dp");
$db->do("NOTIFY dp, 'hello'");
my $heard = $db->pg_notifies;
check("notification", $heard && $heard->[0] eq "dp" && $heard->[2] eq "hello");
check("version", $db->{pg_server_version} >= 150000);
$db->disconnect;
