//! Types of users: domains in casts, columns and the texts of their own constraints.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast;

use super::ddl::{kept_condition, new_condition};
use super::relation_names::qualified_parts;
use super::scope::relation_with;
use super::{Binder, Derivation, Names, Scope, Typed, types};
use crate::catalog::{
    CatalogSnapshot, DeclaredType, Domain, DomainUse, ObjectId, Privileges, Routine, Table,
    lookup_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{DomainConstraints, Expr, Truth};
use crate::types::{DataType, ElementType, Value};

/// Returns the scope in which VALUE is a value of that type.
fn scope_of_value(data_type: DataType) -> Scope {
    let columns = [(SmolStr::new_static("value"), data_type, Derivation::Default)];
    Scope::of(vec![relation_with(SmolStr::default(), 0, columns.into_iter())])
}

/// Returns the constraints of a domain, or of the elements of an array; `None` if it accepts every
/// value of its base type.
pub fn domain_constraints(
    names: &dyn Names,
    used: DomainUse,
) -> Result<Option<Arc<DomainConstraints>>> {
    let id = used.id();
    let missing = || SqlError::internal(format!("there is no domain of number {}", id.0));
    let snapshot = names.snapshot().ok_or_else(missing)?;
    let domain = snapshot.domain(id).ok_or_else(missing)?;
    let mut chain: Vec<&Arc<Domain>> = snapshot.domain_chain(id).collect();
    let not_null = chain.iter().any(|it| it.not_null);
    // The constraints of the domain that is the base are checked first.
    chain.reverse();
    let mut checks = Vec::new();
    for check in chain.iter().flat_map(|it| &it.checks) {
        let scope = scope_of_value(domain.data_type);
        checks.push((check.name.clone(), kept_condition(names, &check.expression, &scope)?));
    }
    if checks.is_empty() && !not_null {
        return Ok(None);
    }
    let path = names.search_path();
    let is_in_path = match &path {
        None => domain.schema == crate::catalog::PUBLIC,
        Some(path) => path.contains(&domain.schema),
    };
    let name = match is_in_path {
        true => crate::catalog::describe::quoted_if_needed(&domain.name),
        false => format!("{}.{}", domain.schema, domain.name),
    };
    let known_as = (domain.schema.clone(), domain.name.clone());
    Ok(Some(Arc::new(DomainConstraints::new((used, known_as, name), not_null, checks))))
}

/// Returns the value of a type that may be a domain, checked.
pub fn checked_value(names: &dyn Names, value: Expr, domain: Option<DomainUse>) -> Result<Expr> {
    let Some(used) = domain else { return Ok(value) };
    Ok(match domain_constraints(names, used)? {
        Some(constraints) => Expr::Domain(Box::new(value), constraints),
        None => value,
    })
}

/// Returns a condition over a row in that slot that holds if the domain of a column accepts its
/// value, and fails otherwise; `None` if the column accepts every value of its type.
pub fn column_domain_check(
    names: &dyn Names,
    table: &Table,
    position: usize,
    slot: usize,
) -> Result<Option<Expr>> {
    let domain = table.columns.get(position).and_then(|column| column.domain);
    let column = Expr::column(slot, position);
    Ok(match checked_value(names, column, domain)? {
        checked @ Expr::Domain(..) => {
            let is_null = Expr::IsNull(Box::new(checked), false);
            Some(Expr::IsTruth(Box::new(is_null), Truth::Unknown, true))
        }
        _ => None,
    })
}

/// Binds the text of a constraint of a domain, as it is kept.
pub fn kept_domain_check(names: &dyn Names, text: &str, data_type: DataType) -> Result<Expr> {
    kept_condition(names, text, &scope_of_value(data_type))
}

impl Binder<'_> {
    /// Resolves a type name, which may be that of a domain.
    pub(crate) fn declared_type(&self, written: &ast::DataType) -> Result<DeclaredType> {
        let error = match types::data_type(written) {
            Ok(data_type) => return Ok(data_type.into()),
            Err(error) if error.state() == SqlState::UndefinedObject => error,
            Err(error) => return Err(error),
        };
        let (mut element, mut is_array) = (written, false);
        // A type has no number of dimensions.
        while let ast::DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(inner, _)
            | ast::ArrayElemTypeDef::Qualified(inner, _),
        ) = element
        {
            (element, is_array) = (inner, true);
        }
        let ast::DataType::Custom(name, _) = element else { return Err(error) };
        let (schema, own) = qualified_parts(name)?;
        let Some((id, snapshot)) = self.type_named(schema.as_deref(), &own)? else {
            return Err(error);
        };
        let named = snapshot.enum_data_type(id).or_else(|| snapshot.composite_data_type(id));
        if let Some(data_type) = named {
            let array = || ElementType::new(data_type).map(DataType::Array);
            return match (is_array, array()) {
                (false, _) => Ok(data_type.into()),
                (true, Some(array)) => Ok(array.into()),
                (true, None) => Err(error),
            };
        }
        match snapshot.domain(id) {
            Some(domain) if is_array => {
                // An array of arrays is one array, so its elements would not be known.
                let is_nested = domain.data_type.element().is_some();
                let array = ElementType::new(domain.data_type).filter(|_| !is_nested);
                let refused = || SqlError::unsupported(format!("the type {written}"));
                let data_type = DataType::Array(array.ok_or_else(refused)?);
                Ok(DeclaredType { data_type, domain: Some(DomainUse::Elements(domain.id)) })
            }
            Some(domain) => {
                let used = DomainUse::Value(domain.id);
                Ok(DeclaredType { data_type: domain.data_type, domain: Some(used) })
            }
            None => Err(error),
        }
    }

    /// Returns the type of a name along the search path, or in the schema that it has, and the
    /// catalog.
    pub(crate) fn type_named(
        &self,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Option<(ObjectId, &CatalogSnapshot)>> {
        let Some(snapshot) = self.names.snapshot() else { return Ok(None) };
        let named = |lookup: &str| Some((*snapshot.type_names.get(lookup)?, snapshot));
        if let Some(schema) = schema {
            self.check_schema(schema, Privileges::USAGE)?;
            return Ok(named(&lookup_name(schema, name)));
        }
        let Some(path) = &self.path else { return Ok(named(name)) };
        let mut usable = path.iter().filter(|it| self.role.is_none() || self.uses_schema(it));
        Ok(usable.find_map(|schema| named(&lookup_name(schema, name))))
    }

    /// Binds a cast to a type that may be a domain. A quoted literal is read at once.
    pub(super) fn cast_to_declared(&mut self, value: Typed, target: DeclaredType) -> Result<Typed> {
        let value = self.cast_or_read(value, target.data_type)?;
        self.checked(value, target)
    }

    /// Returns a value whose domain accepts it.
    pub(super) fn checked(&self, value: Typed, declared: DeclaredType) -> Result<Typed> {
        let expr = checked_value(self.names, value.expr, declared.domain)?;
        Ok(Typed { expr, ..value })
    }

    /// Lets the domains of the arguments accept the values.
    pub(super) fn check_domains(&self, routine: &Routine, arguments: &mut [Expr]) -> Result<()> {
        for (input, value) in routine.inputs().zip(arguments) {
            if let Some(domain) = &input.domain {
                let taken = std::mem::replace(value, Expr::Constant(Value::Null));
                *value = checked_value(self.names, taken, Some(domain.used))?;
            }
        }
        Ok(())
    }

    /// Binds a CHECK of a domain that a statement makes. Returns its text.
    pub fn new_domain_check(&self, text: &str, data_type: DataType) -> Result<Arc<str>> {
        let parsed = crate::parse::expression(text)?;
        let scope = scope_of_value(data_type);
        new_condition(self.names, &parsed, &scope)?;
        let text = parsed.to_string();
        kept_condition(self.names, &text, &scope)?;
        Ok(text.into())
    }

    /// Binds the DEFAULT of a domain that a statement makes. Returns its text.
    pub fn new_domain_default(
        &self,
        text: &str,
        data_type: DataType,
        name: &str,
    ) -> Result<Arc<str>> {
        let parsed = crate::parse::expression(text)?;
        Ok(self.new_default(&parsed, data_type, name)?.0)
    }
}
