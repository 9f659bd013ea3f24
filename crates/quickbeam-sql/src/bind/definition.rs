//! Definitions: CREATE, ALTER, DROP, TRUNCATE; and the expressions of defaults and checks.
//!
//! Defaults and checks are kept as text. They are bound here once when they are defined, so that mistakes show then, and
//! again whenever a statement needs them.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ColumnOption, GeneratedAs, IndexColumn,
    IndexType, ObjectType, ReferentialAction, RenameTableNameKind, Spanned, TableConstraint,
};

use super::insert::relation_of;
use super::{Binder, Names, Scope, Typed, fold, object_name, types};
use crate::catalog::{
    Column, ForeignKeyAction, Method, NewCheck, NewColumn, NewForeignKey, NewIdentity, NewIndex,
    NewKey, NewTable, SequenceOptions, Table,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, Value};

/// A change of the catalog.
#[derive(Clone, Debug)]
pub enum CatalogChange {
    /// CREATE TABLE; true: IF NOT EXISTS.
    CreateTable(NewTable, bool),
    /// CREATE INDEX; true: IF NOT EXISTS.
    CreateIndex(NewIndex, bool),
    /// CREATE VIEW: name, columns, text; true: OR REPLACE.
    CreateView(SmolStr, Vec<SmolStr>, Arc<str>, bool),
    /// CREATE SEQUENCE; true: IF NOT EXISTS.
    CreateSequence(SmolStr, SequenceOptions, bool),
    /// ALTER SEQUENCE … RESTART; none: with its first value.
    RestartSequence(SmolStr, Option<i64>),
    /// DROP of tables, views, indexes or sequences: IF EXISTS, CASCADE.
    Drop(ObjectKind, Vec<SmolStr>, bool, bool),
    /// TRUNCATE: names, CASCADE, RESTART IDENTITY.
    Truncate(Vec<SmolStr>, bool, bool),
    /// ALTER TABLE; true: IF EXISTS.
    Alter(SmolStr, Vec<TableChange>, bool),
}

/// What can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
}

/// One change of ALTER TABLE.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// ADD COLUMN with the value of rows that are there; true: IF NOT EXISTS.
    AddColumn(NewColumn, Value, bool),
    /// DROP COLUMN: IF EXISTS, CASCADE.
    DropColumn(SmolStr, bool, bool),
    /// RENAME COLUMN.
    RenameColumn(SmolStr, SmolStr),
    /// RENAME TO.
    Rename(SmolStr),
    /// ADD PRIMARY KEY.
    AddPrimaryKey(NewKey),
    /// ADD UNIQUE.
    AddUnique(NewKey),
    /// ADD CHECK.
    AddCheck(NewCheck),
    /// ADD FOREIGN KEY.
    AddForeignKey(NewForeignKey),
    /// DROP CONSTRAINT: IF EXISTS, CASCADE.
    DropConstraint(SmolStr, bool, bool),
    /// SET or DROP NOT NULL.
    NotNull(SmolStr, bool),
    /// SET or DROP DEFAULT.
    Default(SmolStr, Option<Arc<str>>),
}

/// A column's DEFAULT, or what counts it up.
pub fn column_default(names: &dyn Names, table: &Table, column: usize) -> Result<Option<Expr>> {
    let Some(column) = table.columns.get(column) else { return Ok(None) };
    if let Some(identity) = column.identity {
        return Ok(Some(Expr::NextValue(identity.sequence.0, column.data_type)));
    }
    match &column.default {
        None => Ok(None),
        Some(text) => default_value(names, text, column.data_type, &column.name).map(Some),
    }
}

fn default_value(names: &dyn Names, text: &str, data_type: DataType, column: &str) -> Result<Expr> {
    let parsed = crate::parse::expression(text)?;
    let mut binder = Binder::new(names, "");
    let (value, level) = binder.level(|binder| {
        let bound: Typed = binder.expression(&parsed, &Scope::default())?;
        binder.assign(bound, data_type, column)
    })?;
    if !level.subqueries.is_empty() || !binder.parameters.is_empty() {
        let message = "a DEFAULT may use neither subqueries nor parameters";
        return Err(SqlError::new(SqlState::InvalidColumnDefinition, message));
    }
    Ok(value)
}

/// A table's CHECK as an expression over a row in that slot.
pub fn check_of(names: &dyn Names, table: &Table, text: &str, slot: usize) -> Result<Expr> {
    let parsed = crate::parse::expression(text)?;
    let relations = vec![relation_of(table, slot, table.name.clone())];
    check_over(names, &parsed, &Scope::of(relations))
}

fn check_over(names: &dyn Names, parsed: &ast::Expr, scope: &Scope) -> Result<Expr> {
    let mut binder = Binder::new(names, "");
    let (value, level) = binder.level(|binder| binder.condition(parsed, scope))?;
    if !level.subqueries.is_empty() || !binder.parameters.is_empty() {
        let message = "a CHECK may use neither subqueries nor parameters";
        return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
    }
    Ok(value)
}

/// The table that CREATE TABLE … AS makes.
pub fn table_for(
    name: SmolStr,
    columns: &[super::OutputColumn],
    if_not_exists: bool,
) -> Result<CatalogChange> {
    let columns = columns.iter().map(|column| NewColumn {
        name: column.name.clone(),
        data_type: column.data_type,
        not_null: false,
        default: None,
        identity: None,
    });
    let table = NewTable { name, columns: columns.collect(), ..NewTable::default() };
    Ok(CatalogChange::CreateTable(table, if_not_exists))
}

fn number_of(expr: &ast::Expr) -> Result<i64> {
    let text = expr.to_string().replace(' ', "");
    text.parse().map_err(|_| {
        SqlError::new(SqlState::InvalidParameterValue, format!("{expr} is no integer"))
    })
}

fn sequence_options(
    list: &[ast::SequenceOptions],
    data_type: Option<DataType>,
) -> Result<SequenceOptions> {
    let mut options = SequenceOptions { data_type, ..SequenceOptions::default() };
    for option in list {
        match option {
            ast::SequenceOptions::IncrementBy(by, _) => options.increment = Some(number_of(by)?),
            ast::SequenceOptions::StartWith(start, _) => options.start = Some(number_of(start)?),
            ast::SequenceOptions::MinValue(Some(least)) => {
                options.minimum = Some(number_of(least)?)
            }
            ast::SequenceOptions::MaxValue(Some(most)) => options.maximum = Some(number_of(most)?),
            ast::SequenceOptions::MinValue(None) | ast::SequenceOptions::MaxValue(None) => {}
            // Values are not handed out in advance.
            ast::SequenceOptions::Cache(_) => {}
            // The parser's flag says NO CYCLE.
            ast::SequenceOptions::Cycle(no) => options.cycle = !no,
        }
    }
    Ok(options)
}

fn method_of(index_type: Option<&IndexType>) -> Result<Method> {
    match index_type {
        None | Some(IndexType::BTree) => Ok(Method::Range),
        Some(IndexType::Hash) => Ok(Method::Hash),
        Some(other) => Err(SqlError::unsupported(format!("the index method {other}"))),
    }
}

fn action_of(action: Option<&ReferentialAction>) -> ForeignKeyAction {
    match action {
        None | Some(ReferentialAction::NoAction) => ForeignKeyAction::NoAction,
        Some(ReferentialAction::Restrict) => ForeignKeyAction::Restrict,
        Some(ReferentialAction::Cascade) => ForeignKeyAction::Cascade,
        Some(ReferentialAction::SetNull) => ForeignKeyAction::SetNull,
        Some(ReferentialAction::SetDefault) => ForeignKeyAction::SetDefault,
    }
}

fn plain_column(column: &IndexColumn) -> Result<SmolStr> {
    match &column.column.expr {
        ast::Expr::Identifier(ident) => Ok(fold(ident)),
        other => Err(SqlError::unsupported(format!("a key on the expression {other}"))),
    }
}

/// Constraints as they are collected from columns and from the table.
#[derive(Default)]
struct Constraints {
    primary_key: Option<NewKey>,
    uniques: Vec<NewKey>,
    checks: Vec<NewCheck>,
    foreign_keys: Vec<NewForeignKey>,
}

impl Constraints {
    fn set_primary_key(&mut self, key: NewKey) -> Result<()> {
        if self.primary_key.is_some() {
            let message = "multiple primary keys for a table are not allowed";
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        self.primary_key = Some(key);
        Ok(())
    }

    fn add(&mut self, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = key.columns.iter().map(plain_column).collect::<Result<_>>()?;
                let name = key.name.as_ref().map(fold);
                self.set_primary_key(NewKey {
                    name,
                    columns,
                    method: key_method(&key.index_type, &key.index_options)?,
                })
            }
            TableConstraint::Unique(key) => {
                let columns = key.columns.iter().map(plain_column).collect::<Result<_>>()?;
                let name = key.name.as_ref().map(fold);
                let method = key_method(&key.index_type, &key.index_options)?;
                self.uniques.push(NewKey { name, columns, method });
                Ok(())
            }
            TableConstraint::Check(check) => {
                self.checks.push(new_check(check.name.as_ref().map(fold), &check.expr));
                Ok(())
            }
            TableConstraint::ForeignKey(key) => {
                self.foreign_key(key, key.columns.iter().map(fold).collect())
            }
            other => Err(SqlError::unsupported(format!("the constraint {other}"))),
        }
    }

    fn foreign_key(
        &mut self,
        key: &ast::ForeignKeyConstraint,
        columns: Vec<SmolStr>,
    ) -> Result<()> {
        self.foreign_keys.push(NewForeignKey {
            name: key.name.as_ref().map(fold),
            columns,
            parent: object_name(&key.foreign_table)?,
            parent_columns: key.referred_columns.iter().map(fold).collect(),
            on_delete: action_of(key.on_delete.as_ref()),
            on_update: action_of(key.on_update.as_ref()),
        });
        Ok(())
    }
}

/// A CHECK; which columns it reads is found when it is bound.
fn new_check(name: Option<SmolStr>, expr: &ast::Expr) -> NewCheck {
    NewCheck { name, expression: expr.to_string().into(), columns: Vec::new() }
}

/// The names of the columns that a CHECK reads.
fn columns_read(condition: &Expr, names: &[SmolStr]) -> Vec<SmolStr> {
    let mut columns: Vec<usize> = Vec::new();
    condition.each_column(&mut |column| columns.push(column.column));
    columns.sort_unstable();
    columns.dedup();
    columns.into_iter().filter_map(|column| names.get(column).cloned()).collect()
}

fn key_method(index_type: &Option<IndexType>, options: &[ast::IndexOption]) -> Result<Method> {
    let using = options.iter().find_map(|option| match option {
        ast::IndexOption::Using(method) => Some(method),
        ast::IndexOption::Comment(_) => None,
    });
    method_of(using.or(index_type.as_ref()))
}

impl Binder<'_> {
    /// CREATE TABLE without a query.
    pub fn create_table(&mut self, create: &ast::CreateTable) -> Result<CatalogChange> {
        if create.temporary || create.external || create.or_replace || create.like.is_some() {
            return Err(SqlError::unsupported("this form of CREATE TABLE"));
        }
        let name = object_name(&create.name)?;
        let mut constraints = Constraints::default();
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            columns.push(self.new_column(column, &mut constraints)?);
        }
        for constraint in &create.constraints {
            constraints.add(constraint).map_err(|error| {
                error.at(self.place_of_key(self.span_start(constraint.span()), true))
            })?;
        }
        self.bind_checks(&name, &columns, &mut constraints.checks)?;
        let Constraints { primary_key, uniques, checks, foreign_keys } = constraints;
        let table = NewTable { name, columns, primary_key, uniques, checks, foreign_keys };
        Ok(CatalogChange::CreateTable(table, create.if_not_exists))
    }

    fn new_column(
        &mut self,
        column: &ast::ColumnDef,
        constraints: &mut Constraints,
    ) -> Result<NewColumn> {
        let name = fold(&column.name);
        let data_type = types::data_type(&column.data_type).map_err(|error| {
            let behind = crate::parse::offset_of(self.text, column.name.span.end);
            error.at(self.place_of_type(&column.data_type, behind))
        })?;
        if types::digits_of_second(&column.data_type).is_some() {
            let what = format!("a column of type {}", column.data_type);
            let position = self.place_of(&column.name);
            return Err(SqlError::unsupported(what).at(position));
        }
        let mut new = NewColumn {
            name: name.clone(),
            data_type,
            not_null: false,
            default: None,
            identity: None,
        };
        if types::is_serial(&column.data_type) {
            let options =
                SequenceOptions { data_type: Some(data_type), ..SequenceOptions::default() };
            new.identity = Some(NewIdentity { always: false, options });
            new.not_null = true;
        }
        for option in &column.options {
            let constraint_name = option.name.as_ref().map(fold);
            let columns = vec![name.clone()];
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => new.not_null = true,
                ColumnOption::Default(expr) => {
                    let text = expr.to_string();
                    default_value(self.names, &text, data_type, &name)?;
                    new.default = Some(text.into());
                }
                ColumnOption::PrimaryKey(key) => {
                    let method = key_method(&key.index_type, &key.index_options)?;
                    let key = NewKey { name: constraint_name, columns, method };
                    let behind = column.name.span;
                    constraints.set_primary_key(key).map_err(|error| {
                        error.at(self.place_of_key(self.span_start(behind), false))
                    })?;
                    new.not_null = true;
                }
                ColumnOption::Unique(key) => {
                    let method = key_method(&key.index_type, &key.index_options)?;
                    constraints.uniques.push(NewKey { name: constraint_name, columns, method });
                }
                ColumnOption::Check(check) => {
                    let name = constraint_name.or_else(|| check.name.as_ref().map(fold));
                    constraints.checks.push(new_check(name, &check.expr));
                }
                ColumnOption::ForeignKey(key) => {
                    constraints.foreign_key(key, columns)?;
                    if let (Some(last), Some(name)) =
                        (constraints.foreign_keys.last_mut(), constraint_name)
                    {
                        last.name = Some(name);
                    }
                }
                ColumnOption::Generated {
                    generated_as,
                    sequence_options: list,
                    generation_expr: None,
                    ..
                } => {
                    let always = matches!(generated_as, GeneratedAs::Always);
                    let options =
                        sequence_options(list.as_deref().unwrap_or_default(), Some(data_type))?;
                    new.identity = Some(NewIdentity { always, options });
                    new.not_null = true;
                }
                other => return Err(SqlError::unsupported(format!("the column option {other}"))),
            }
        }
        Ok(new)
    }

    /// Where the words PRIMARY KEY stand: behind a column's name, or before the first column of a constraint that has no name.
    fn place_of_key(&self, near: u32, before: bool) -> usize {
        let near = near as usize;
        let lower = self.text.to_ascii_lowercase();
        let found = if before {
            lower.get(..near).and_then(|text| {
                let word = text.trim_end_matches([' ', '(', '\n', '\t']);
                word.ends_with("key").then(|| word.rfind("primary")).flatten()
            })
        } else {
            lower.get(near..).and_then(|text| text.find("primary")).map(|at| near + at)
        };
        found.unwrap_or(near)
    }

    /// Binds checks of a table that is not there yet.
    fn bind_checks(
        &self,
        table: &SmolStr,
        columns: &[NewColumn],
        checks: &mut [NewCheck],
    ) -> Result<()> {
        let names: Vec<SmolStr> = columns.iter().map(|column| column.name.clone()).collect();
        let columns = columns.iter().enumerate().map(|(column, new)| super::ScopeColumn {
            name: new.name.clone(),
            data_type: new.data_type,
            at: crate::expression::ColumnRef { slot: 0, column },
        });
        let relation = super::ScopeRelation { name: table.clone(), columns: columns.collect() };
        let scope = Scope::of(vec![relation]);
        for check in checks {
            let parsed = crate::parse::expression(&check.expression)?;
            check.columns = columns_read(&check_over(self.names, &parsed, &scope)?, &names);
        }
        Ok(())
    }

    /// CREATE INDEX.
    pub fn create_index(&mut self, create: &ast::CreateIndex) -> Result<CatalogChange> {
        if create.predicate.is_some()
            || !create.include.is_empty()
            || create.nulls_distinct == Some(false)
        {
            return Err(SqlError::unsupported(
                "an index with a condition, with INCLUDE or NULLS NOT DISTINCT",
            ));
        }
        let table = self.table(&create.table_name)?;
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            let name = plain_column(column)?;
            let options = &column.column.options;
            let descending = matches!(options.sort, Some(ast::OrderBySort::Desc));
            columns.push((name, descending, options.nulls_first));
        }
        let name = create.name.as_ref().map(object_name).transpose()?;
        let method = method_of(create.using.as_ref())?;
        let index =
            NewIndex { name, table: table.name.clone(), columns, unique: create.unique, method };
        Ok(CatalogChange::CreateIndex(index, create.if_not_exists))
    }

    /// CREATE VIEW.
    pub fn create_view(&mut self, create: &ast::CreateView) -> Result<CatalogChange> {
        if create.materialized || create.temporary {
            return Err(SqlError::unsupported("this form of CREATE VIEW"));
        }
        let name = object_name(&create.name)?;
        let query = self.query(&create.query, None)?;
        if !self.parameters.is_empty() {
            let message = "a view may not have parameters";
            return Err(SqlError::new(SqlState::UndefinedParameter, message));
        }
        if let Some(excess) = create.columns.get(query.columns.len()) {
            let message = "CREATE VIEW specifies more column names than columns";
            let position = self.place_of(&excess.name);
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        let given = create.columns.iter().map(|column| fold(&column.name)).collect::<Vec<_>>();
        let columns =
            self.columns_for(&query, &given).into_iter().map(|column| column.name).collect();
        let text = create.query.to_string().into();
        Ok(CatalogChange::CreateView(name, columns, text, create.or_replace))
    }

    /// CREATE SEQUENCE.
    pub fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        data_type: Option<&ast::DataType>,
        list: &[ast::SequenceOptions],
        owned_by: Option<&ast::ObjectName>,
        if_not_exists: bool,
    ) -> Result<CatalogChange> {
        if owned_by.is_some_and(|owner| !owner.to_string().eq_ignore_ascii_case("none")) {
            return Err(SqlError::unsupported("OWNED BY a column"));
        }
        let data_type = data_type.map(types::data_type).transpose()?;
        let options = sequence_options(list, data_type)?;
        Ok(CatalogChange::CreateSequence(object_name(name)?, options, if_not_exists))
    }

    /// CALL of the procedure that stands for ALTER SEQUENCE … RESTART.
    pub fn call_procedure(&mut self, call: &ast::Function) -> Result<CatalogChange> {
        let refuse = || SqlError::unsupported("this form of CALL or of ALTER SEQUENCE");
        let ast::FunctionArguments::List(list) = &call.args else { return Err(refuse()) };
        let is_restart = object_name(&call.name)? == crate::parse::RESTART_SEQUENCE;
        let mut arguments = list.args.iter().map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        });
        let name = match arguments.next().flatten() {
            Some(ast::Expr::Identifier(name)) if is_restart => fold(name),
            Some(ast::Expr::CompoundIdentifier(parts)) if is_restart => {
                object_name(&ast::ObjectName::from(parts.clone()))?
            }
            _ => return Err(refuse()),
        };
        let value = match arguments.next() {
            None => None,
            Some(expr) => {
                let bound = self.expression(expr.ok_or_else(refuse)?, &Scope::default())?;
                let value = bound.expr.as_constant().and_then(|value| value.as_ref().as_i64());
                Some(value.ok_or_else(refuse)?)
            }
        };
        if arguments.next().is_some() {
            return Err(refuse());
        }
        Ok(CatalogChange::RestartSequence(name, value))
    }

    /// DROP.
    pub fn drop(
        &mut self,
        kind: ObjectType,
        names: &[ast::ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<CatalogChange> {
        let kind = match kind {
            ObjectType::Table => ObjectKind::Table,
            ObjectType::View => ObjectKind::View,
            ObjectType::Index => ObjectKind::Index,
            ObjectType::Sequence => ObjectKind::Sequence,
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        };
        let names = names.iter().map(object_name).collect::<Result<_>>()?;
        Ok(CatalogChange::Drop(kind, names, if_exists, cascade))
    }

    /// TRUNCATE.
    pub fn truncate(&mut self, truncate: &ast::Truncate) -> Result<CatalogChange> {
        let names = truncate
            .table_names
            .iter()
            .map(|target| object_name(&target.name))
            .collect::<Result<_>>()?;
        let cascade = matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
        let restart = matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart));
        Ok(CatalogChange::Truncate(names, cascade, restart))
    }

    /// ALTER TABLE.
    pub fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<CatalogChange> {
        let name = object_name(&alter.name)?;
        let mut changes = Vec::with_capacity(alter.operations.len());
        for operation in &alter.operations {
            self.table_change(&name, operation, &mut changes)?;
        }
        Ok(CatalogChange::Alter(name, changes, alter.if_exists))
    }

    fn table_change(
        &mut self,
        table: &SmolStr,
        operation: &AlterTableOperation,
        changes: &mut Vec<TableChange>,
    ) -> Result<()> {
        let cascades = |behavior: &Option<ast::DropBehavior>| {
            matches!(behavior, Some(ast::DropBehavior::Cascade))
        };
        match operation {
            AlterTableOperation::AddColumn { column_def, if_not_exists, .. } => {
                let mut constraints = Constraints::default();
                let column = self.new_column(column_def, &mut constraints)?;
                let missing = match &column.default {
                    None => Value::Null,
                    Some(text) => {
                        let value =
                            default_value(self.names, text, column.data_type, &column.name)?;
                        if value.is_volatile() {
                            return Err(SqlError::unsupported(
                                "ADD COLUMN with a DEFAULT that differs from row to row",
                            ));
                        }
                        let frame = crate::expression::Frame::of_parameters(&[]);
                        value.evaluate(&frame)?.into_value()
                    }
                };
                changes.push(TableChange::AddColumn(column, missing, *if_not_exists));
                constraint_changes(constraints, changes);
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let names = column_names.iter().map(fold);
                changes.extend(names.map(|name| {
                    TableChange::DropColumn(name, *if_exists, cascades(drop_behavior))
                }));
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                changes
                    .push(TableChange::RenameColumn(fold(old_column_name), fold(new_column_name)));
            }
            AlterTableOperation::RenameTable { table_name } => {
                let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = table_name;
                changes.push(TableChange::Rename(object_name(name)?));
            }
            AlterTableOperation::AddConstraint { not_valid: true, .. } => {
                return Err(SqlError::unsupported("a constraint that is NOT VALID"));
            }
            AlterTableOperation::AddConstraint { constraint, .. } => {
                let mut constraints = Constraints::default();
                constraints.add(constraint)?;
                if let (Some(check), Some(crate::catalog::Relation::Table(table))) =
                    (constraints.checks.first_mut(), self.names.relation(table)?)
                {
                    let names: Vec<SmolStr> =
                        table.columns.iter().map(|c| c.name.clone()).collect();
                    let condition = check_of(self.names, &table, &check.expression, 0)?;
                    check.columns = columns_read(&condition, &names);
                }
                constraint_changes(constraints, changes);
            }
            AlterTableOperation::DropConstraint { name, if_exists, drop_behavior } => {
                changes.push(TableChange::DropConstraint(
                    fold(name),
                    *if_exists,
                    cascades(drop_behavior),
                ));
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let column = fold(column_name);
                changes.push(match op {
                    AlterColumnOperation::SetNotNull => TableChange::NotNull(column, true),
                    AlterColumnOperation::DropNotNull => TableChange::NotNull(column, false),
                    AlterColumnOperation::DropDefault => TableChange::Default(column, None),
                    AlterColumnOperation::SetDefault { value } => {
                        let text = value.to_string();
                        if let Some(crate::catalog::Relation::Table(table)) =
                            self.names.relation(table)?
                            && let Some(known) =
                                table.columns.iter().find(|known: &&Column| known.name == column)
                        {
                            default_value(self.names, &text, known.data_type, &column)?;
                        }
                        TableChange::Default(column, Some(text.into()))
                    }
                    other => return Err(SqlError::unsupported(format!("ALTER COLUMN {other}"))),
                });
            }
            other => return Err(SqlError::unsupported(format!("ALTER TABLE … {other}"))),
        }
        Ok(())
    }
}

fn constraint_changes(constraints: Constraints, changes: &mut Vec<TableChange>) {
    changes.extend(constraints.primary_key.map(TableChange::AddPrimaryKey));
    changes.extend(constraints.uniques.into_iter().map(TableChange::AddUnique));
    changes.extend(constraints.checks.into_iter().map(TableChange::AddCheck));
    changes.extend(constraints.foreign_keys.into_iter().map(TableChange::AddForeignKey));
}
