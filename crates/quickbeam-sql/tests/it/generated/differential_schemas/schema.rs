//! Generated tables: columns, keys, constraints, indexes and rows, as definitions in both dialects.

use std::fmt;

use proptest::prelude::*;

/// A choice among as many things as turn out to be there: taken modulo their number.
pub type Pick = u8;

pub fn pick() -> impl Strategy<Value = Pick> + Clone {
    any::<Pick>()
}

pub fn choose<T>(things: &[T], pick: Pick) -> Option<&T> {
    things.get(usize::from(pick).checked_rem(things.len())?)
}

/// What a column is declared as.
#[derive(Clone, Debug, Copy, PartialEq, Eq)]
pub enum Kind {
    Small,
    Int,
    Big,
    Double,
    Numeric,
    Boolean,
    Text,
    Char,
    Date,
}

impl Kind {
    fn declared(self) -> &'static str {
        match self {
            Kind::Small => "SMALLINT",
            Kind::Int => "INT",
            Kind::Big => "BIGINT",
            Kind::Double => "DOUBLE PRECISION",
            Kind::Numeric => "NUMERIC(8,2)",
            Kind::Boolean => "BOOLEAN",
            Kind::Text => "TEXT",
            Kind::Char => "CHAR(3)",
            Kind::Date => "DATE",
        }
    }

    pub fn family(self) -> Family {
        match self {
            Kind::Small | Kind::Int | Kind::Big => Family::Whole,
            Kind::Double | Kind::Numeric => Family::Number,
            Kind::Boolean => Family::Boolean,
            Kind::Text => Family::Text,
            Kind::Char => Family::Char,
            Kind::Date => Family::Date,
        }
    }
}

/// Kinds whose values go into each other's places. Numbers are quarters, which every kind that has
/// them holds exactly; CHAR(3) is always full, since SQLite knows of no blanks at its end.
#[derive(Clone, Debug, Copy, PartialEq, Eq)]
pub enum Family {
    Whole,
    Number,
    Boolean,
    Text,
    Char,
    Date,
}

impl Family {
    pub fn fits(self, wanted: Family) -> bool {
        self == wanted || (self.broad() == wanted && wanted.broad() == wanted)
    }

    pub fn broad(self) -> Family {
        match self {
            Family::Whole => Family::Number,
            Family::Char => Family::Text,
            other => other,
        }
    }

    pub fn is_number(self) -> bool {
        self.broad() == Family::Number
    }

    /// A value as it is written in VALUES: one of a few, or one of many.
    pub fn literal(self, pick: Pick, many: bool) -> String {
        let n = i32::from(pick);
        let letter = |n: i32| char::from(b"abX"[n as usize % 3]);
        match (self, many) {
            (Family::Whole, false) => (n % 12 - 3).to_string(),
            (Family::Whole, true) => (n % 90).to_string(),
            (Family::Number, false) => (f64::from(n % 45 - 12) / 4.0).to_string(),
            (Family::Number, true) => (f64::from(n) / 4.0).to_string(),
            (Family::Boolean, _) => if n % 2 == 0 { "TRUE" } else { "FALSE" }.to_owned(),
            (Family::Text, false) => match n % 10 {
                0 => "''".to_owned(),
                m if m < 4 => format!("'{}'", letter(m)),
                m => format!("'{}{}'", letter(m), letter(n / 3)),
            },
            (Family::Text, true) => format!("'{}{}'", letter(n), n / 3),
            (Family::Char, false) => {
                format!("'{}{}{}'", letter(n), letter(n / 3 % 2), letter(n / 6 % 2))
            }
            (Family::Char, true) => format!("'{}{}{}'", letter(n / 9), letter(n / 3), letter(n)),
            (Family::Date, false) => format!("'2020-01-0{}'", n % 9 + 1),
            (Family::Date, true) => format!("'2020-0{}-{:02}'", n / 28 % 9 + 1, n % 28 + 1),
        }
    }

    pub fn null(self) -> &'static str {
        match self {
            Family::Whole => "CAST(NULL AS INTEGER)",
            Family::Number => "CAST(NULL AS DOUBLE PRECISION)",
            Family::Boolean => "CAST(NULL AS BOOLEAN)",
            Family::Text | Family::Char => "CAST(NULL AS TEXT)",
            Family::Date => "CAST(NULL AS DATE)",
        }
    }

    /// A constant that is of its kind wherever it stands.
    pub fn constant(self, pick: Pick) -> String {
        match self {
            _ if pick % 11 == 10 => self.null().to_owned(),
            // Beside a CHAR(3) a literal would be one too, and filled up with blanks.
            Family::Text => format!("CAST({} AS TEXT)", self.literal(pick, false)),
            // A cast to DATE makes a number of it in SQLite.
            Family::Date => format!("COALESCE({}, {})", self.null(), self.literal(pick, false)),
            _ => self.literal(pick, false),
        }
    }
}

/// A value of a row: which one, and whether it is NULL.
#[derive(Clone, Debug, Copy)]
pub struct Cell(pub Pick, pub Pick);

pub fn cell() -> impl Strategy<Value = Cell> {
    (pick(), pick()).prop_map(|(value, null)| Cell(value, null))
}

#[derive(Clone, Debug)]
pub struct Column {
    pub kind: Kind,
    pub not_null: bool,
    default: Option<Cell>,
    /// Belongs to a key: has many values, and is changed only so that nothing collides half-way.
    pub unique: bool,
}

impl Column {
    /// Also NULL where that is refused, now and then.
    pub fn value(&self, Cell(value, null): Cell) -> String {
        let is_null = if self.not_null { null > 252 } else { null % 8 == 7 };
        if is_null { "NULL".to_owned() } else { self.kind.family().literal(value, self.unique) }
    }

    /// Has numbers that may grow by some ten thousands.
    pub fn is_wide(&self) -> bool {
        self.kind.family().is_number() && self.kind != Kind::Small
    }
}

#[derive(Clone, Debug)]
struct Key {
    columns: Vec<usize>,
    hashed: bool,
}

#[derive(Clone, Debug)]
struct Index {
    key: Key,
    unique: bool,
    descending: Pick,
    /// It is made when the rows are there.
    late: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    primary: Option<Key>,
    uniques: Vec<Key>,
    indexes: Vec<Index>,
    checks: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The columns of everything that ON CONFLICT can name.
    pub fn targets(&self) -> Vec<Vec<usize>> {
        let indexes = self.indexes.iter().filter(|index| index.unique && !index.late);
        let keys = self.primary.iter().chain(&self.uniques).chain(indexes.map(|index| &index.key));
        keys.map(|key| key.columns.clone()).collect()
    }

    /// What makes the table, its indexes and its rows.
    pub fn definition(&self, ours: bool) -> Vec<String> {
        let key = |key: &Key| {
            let hash = if ours && key.hashed { " USING HASH" } else { "" };
            format!("({}){hash}", names(&key.columns))
        };
        let mut parts: Vec<String> = Vec::new();
        for (position, column) in self.columns.iter().enumerate() {
            let default = column.default.map_or(String::new(), |Cell(value, _)| {
                format!(" DEFAULT {}", column.kind.family().literal(value, false))
            });
            let not_null = if column.not_null { " NOT NULL" } else { "" };
            parts.push(format!("c{position} {}{default}{not_null}", column.kind.declared()));
        }
        parts.extend(self.primary.iter().map(|primary| format!("PRIMARY KEY {}", key(primary))));
        parts.extend(self.uniques.iter().map(|unique| format!("UNIQUE {}", key(unique))));
        parts.extend(self.checks.iter().map(|check| format!("CHECK ({check})")));
        let mut all = vec![format!("CREATE TABLE {} ({})", self.name, parts.join(", "))];
        let index = |(position, index): (usize, &Index)| {
            let unique = if index.unique { "UNIQUE " } else { "" };
            let (hash, end) = match (ours && index.key.hashed, index.key.hashed) {
                (true, _) => (" USING HASH", ""),
                (_, false) if index.descending % 4 == 3 => ("", " DESC"),
                _ => ("", ""),
            };
            let (name, columns) = (&self.name, names(&index.key.columns));
            format!("CREATE {unique}INDEX {name}_{position} ON {name}{hash} ({columns}{end})")
        };
        let some = |late| self.indexes.iter().enumerate().filter(move |(_, it)| it.late == late);
        all.extend(some(false).map(index));
        all.extend(self.rows.iter().map(|row| self.insert(std::slice::from_ref(row), None)));
        all.extend(some(true).map(index));
        all
    }

    /// INSERT of rows, each of which has at least as many cells as there are columns; one column
    /// may be left out.
    pub fn insert(&self, rows: &[Vec<Cell>], without: Option<usize>) -> String {
        let row = |row: &Vec<Cell>| {
            let values = self.columns.iter().zip(row).enumerate();
            let values = values.filter(|(at, _)| without != Some(*at));
            let values = values.map(|(_, (column, cell))| column.value(*cell));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        let columns = without.map_or(String::new(), |without| {
            let others: Vec<usize> = (0..self.columns.len()).filter(|at| *at != without).collect();
            format!(" ({})", names(&others))
        });
        format!("INSERT INTO {}{columns} VALUES {}", self.name, rows.join(", "))
    }
}

pub fn names(columns: &[usize]) -> String {
    columns.iter().map(|at| format!("c{at}")).collect::<Vec<_>>().join(", ")
}

pub const MOST_COLUMNS: usize = 6;

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Int,
        Kind::Int,
        Kind::Small,
        Kind::Big,
        Kind::Double,
        Kind::Text,
        Kind::Text,
        Kind::Date,
        Kind::Boolean,
        Kind::Numeric,
        Kind::Char,
    ])
}

/// Which columns a key has; made fit for the table in `Draft::table`.
type Draft = (Vec<Pick>, bool);

fn key(most: usize) -> impl Strategy<Value = Draft> {
    (prop::collection::vec(pick(), 1..=most), prop::bool::weighted(0.4))
}

/// Different columns among those of whose kinds there are enough values.
fn fit((picks, hashed): Draft, columns: &[Column], any: bool) -> Option<Key> {
    let fitting: Vec<usize> =
        (0..columns.len()).filter(|at| any || columns[*at].kind != Kind::Boolean).collect();
    let mut found = Vec::new();
    for pick in picks {
        found.extend(choose(&fitting, pick).filter(|at| !found.contains(*at)));
    }
    (!found.is_empty()).then_some(Key { columns: found, hashed })
}

fn check(columns: &[Column], (column, form, value): (Pick, Pick, Pick)) -> String {
    let at = usize::from(column) % columns.len();
    let family = columns[at].kind.family();
    match (family, form % 3) {
        (Family::Boolean, _) => {
            format!("c{at} OR c{} IS NOT NULL", usize::from(value) % columns.len())
        }
        (_, 0) => format!("c{at} <> {}", family.literal(value, false)),
        (_, 1) if family.is_number() => format!("c{at} > {}", -i32::from(value % 60) - 2),
        _ => format!("c{at} >= {} OR c{at} IS NULL", family.literal(value % 2, false)),
    }
}

/// A few of them: mostly none.
fn few<T: Clone + fmt::Debug + 'static>(
    one: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Vec<T>> {
    let one = one.boxed();
    prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(one, 1..3),
    ]
    .boxed()
}

pub fn table(number: usize) -> impl Strategy<Value = Table> {
    let default = prop::option::weighted(0.2, cell());
    let column = (kind(), prop::bool::weighted(0.3), default);
    let columns = prop::collection::vec(column, 1..=MOST_COLUMNS);
    let keys = (prop::option::weighted(0.7, key(2)), few(key(2)));
    let unique = prop::bool::weighted(0.2);
    let index = (key(3), unique, pick(), prop::bool::weighted(0.3));
    let indexes = prop::collection::vec(index, 0..4);
    let checks = few((pick(), pick(), pick()));
    let row = prop::collection::vec(cell(), MOST_COLUMNS).boxed();
    let rows = prop_oneof![
        1 => prop::collection::vec(row.clone(), 0..3),
        4 => prop::collection::vec(row, 3..22),
    ];
    (columns, keys, indexes, checks, rows).prop_map(
        move |(columns, (primary, uniques), indexes, checks, rows)| {
            let mut columns: Vec<Column> = columns
                .into_iter()
                .map(|(kind, not_null, default)| Column { kind, not_null, default, unique: false })
                .collect();
            let primary = primary.and_then(|draft| fit(draft, &columns, false));
            let uniques: Vec<Key> =
                uniques.into_iter().filter_map(|draft| fit(draft, &columns, false)).collect();
            let indexes: Vec<Index> = indexes
                .into_iter()
                .filter_map(|(draft, unique, descending, late)| {
                    let key = fit(draft, &columns, !unique)?;
                    Some(Index { key, unique, descending, late })
                })
                .collect();
            let checks = checks.into_iter().map(|draft| check(&columns, draft)).collect();
            let unique_indexes = indexes.iter().filter(|index| index.unique);
            for key in primary.iter().chain(&uniques).chain(unique_indexes.map(|it| &it.key)) {
                key.columns.iter().for_each(|at| columns[*at].unique = true);
            }
            for at in primary.iter().flat_map(|key| &key.columns) {
                columns[*at].not_null = true;
            }
            let name = format!("t{number}");
            Table { name, columns, primary, uniques, indexes, checks, rows }
        },
    )
}
