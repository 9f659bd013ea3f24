//! Scopes: visible names and the columns that they mean.

use std::sync::Arc;

use smol_str::SmolStr;

use super::Derivation;
use crate::catalog::{Table, View};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr, TextPosition};
use crate::types::{DataType, EncodedType};

/// A column that can be named.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// Its name.
    pub name: SmolStr,
    /// Its type; unknown for NULL in a subquery's output.
    pub data_type: DataType,
    /// Where it is.
    pub at: ColumnRef,
    /// Its collation.
    pub collation: Derivation,
    /// The type of what is stored there, if USING merged it with a column of another type.
    pub stored: Option<DataType>,
}

impl ScopeColumn {
    /// Returns the value.
    pub fn value(&self) -> Expr {
        let column = Expr::Column(self.at);
        match self.stored {
            None => column,
            Some(stored) if stored.is_same_kind(self.data_type) => column,
            // The blanks at the end of a CHAR go.
            Some(DataType::Char(_)) => Expr::Trimmed(Box::new(column)),
            stored => column.cast(stored, self.data_type, TextPosition(0)),
        }
    }
}

/// What the name of an item of FROM means as a value.
#[derive(Clone, Debug, Default)]
pub enum RowOf {
    /// A row of a table, or one of a type without a name.
    #[default]
    Item,
    /// A row of a view.
    View(Arc<View>),
    /// The value of the only column, as of a function that returns values.
    Value,
    /// A row of a join with a name.
    Join,
    /// A row of a type with a name, as of an array of such rows.
    Composite(EncodedType),
}

/// The origin of an item's rows.
#[derive(Clone, Debug)]
pub struct RowOrigin {
    /// The slot of the table or query.
    pub slot: usize,
    /// The slots of the FULL JOINs with USING around it, innermost first.
    pub joined: Vec<usize>,
    /// Whether a column is never NULL in its rows.
    pub has_value: bool,
}

impl RowOrigin {
    /// Returns the origin of the rows in a slot.
    pub fn new(slot: usize, has_value: bool) -> RowOrigin {
        RowOrigin { slot, joined: Vec::new(), has_value }
    }
}

/// An item of FROM with its name.
#[derive(Clone, Debug, Default)]
pub struct ScopeRelation {
    /// The alias, or the table's name.
    pub name: SmolStr,
    /// Its columns.
    pub columns: Vec<ScopeColumn>,
    /// What its name means as a value.
    pub row: RowOf,
    /// Whether an outer join may return NULLs instead of its rows.
    pub is_nullable: bool,
    /// Where its rows come from; `None` if it is no item of FROM.
    pub origin: Option<RowOrigin>,
    /// Whether it is the alias of USING, which names columns of the joined items again. A name
    /// without a qualifier does not mean them.
    pub is_second_name: bool,
}

/// All that can be named at a place.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The items of FROM, in order.
    pub relations: Vec<ScopeRelation>,
    /// Columns that USING merged with others: a name without a qualifier does not mean them. One
    /// place may have columns of several types.
    pub hidden: Vec<(ColumnRef, DataType)>,
    /// The columns that `*` expands to. A column merged by USING appears once, before the others of
    /// its join.
    pub star: Vec<ColumnRef>,
    /// The items of FROM before the join that is bound now, which LATERAL items of it read too.
    pub before: Option<Arc<Scope>>,
    /// The query around a subquery.
    pub outer: Option<Arc<Scope>>,
}

impl Scope {
    /// Makes a scope of these relations, without joins.
    pub fn of(relations: Vec<ScopeRelation>) -> Scope {
        let own = relations.iter().filter(|relation| !relation.is_second_name);
        let star = own.flat_map(|relation| &relation.columns).map(|column| column.at).collect();
        Scope { relations, star, ..Scope::default() }
    }

    /// Searches this scope only.
    fn matches<'s>(
        &'s self,
        relation: Option<&str>,
        name: &str,
    ) -> Result<Option<&'s ScopeColumn>> {
        let mut found: Option<&ScopeColumn> = None;
        let relations = self.relations.iter();
        for candidate in relations.filter(|candidate| match relation {
            None => !candidate.is_second_name,
            Some(named) => named == candidate.name,
        }) {
            for column in candidate.columns.iter().filter(|column| column.name == name) {
                if relation.is_none() && self.is_hidden(column) {
                    continue;
                }
                if found.is_some() {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    return Err(SqlError::new(SqlState::AmbiguousColumn, message));
                }
                found = Some(column);
            }
        }
        Ok(found)
    }

    fn is_hidden(&self, column: &ScopeColumn) -> bool {
        self.hidden.contains(&(column.at, column.data_type))
    }

    /// The column meant by `name`, or by `relation.name`.
    pub fn resolve(&self, relation: Option<&str>, name: &str) -> Result<&ScopeColumn> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(column) = here.matches(relation, name)? {
                return Ok(column);
            }
            scope = here.outer.as_deref();
        }
        Err(self.missing(relation, name))
    }

    #[cold]
    fn missing(&self, relation: Option<&str>, name: &str) -> SqlError {
        match relation {
            Some(relation) if self.relation(relation).is_none() => {
                let message = format!("missing FROM-clause entry for table \"{relation}\"");
                SqlError::new(SqlState::UndefinedTable, message)
            }
            Some(relation) => {
                let message = format!("column {relation}.{name} does not exist");
                SqlError::new(SqlState::UndefinedColumn, message)
            }
            None => {
                let message = format!("column \"{name}\" does not exist");
                SqlError::new(SqlState::UndefinedColumn, message)
            }
        }
    }

    /// Returns the relation of that name in FROM.
    pub fn relation(&self, name: &str) -> Option<&ScopeRelation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// Adds what stands in FROM; its name must not be there yet.
    pub fn add(&mut self, relation: ScopeRelation) -> Result<()> {
        if !relation.name.is_empty() && self.relation(&relation.name).is_some() {
            let message = format!("table name \"{}\" specified more than once", relation.name);
            return Err(SqlError::new(SqlState::DuplicateAlias, message));
        }
        if !relation.is_second_name {
            self.star.extend(relation.columns.iter().map(|column| column.at));
        }
        self.relations.push(relation);
        Ok(())
    }

    /// Returns the columns that `*` expands to.
    pub fn all_columns(&self) -> Vec<&ScopeColumn> {
        let columns = || self.relations.iter().flat_map(|relation| &relation.columns);
        let column = |at: &ColumnRef| {
            let shown = columns().find(|column| column.at == *at && !self.is_hidden(column));
            shown.or_else(|| columns().find(|column| column.at == *at))
        };
        self.star.iter().filter_map(column).collect()
    }
}

/// A table under a name.
pub(in crate::bind) fn relation_of(table: &Table, slot: usize, name: SmolStr) -> ScopeRelation {
    let columns = table.columns.iter().map(|column| {
        let collation = Derivation::of_column(column.collation);
        (column.name.clone(), column.data_type, collation)
    });
    relation_with(name, slot, columns)
}

/// Makes a relation with these columns and this name.
pub(in crate::bind) fn relation_with(
    name: SmolStr,
    slot: usize,
    columns: impl Iterator<Item = (SmolStr, DataType, Derivation)>,
) -> ScopeRelation {
    let columns = columns.enumerate().map(|(column, (name, data_type, collation))| ScopeColumn {
        name,
        data_type,
        at: ColumnRef { slot, column },
        collation,
        stored: None,
    });
    ScopeRelation { name, columns: columns.collect(), ..ScopeRelation::default() }
}
