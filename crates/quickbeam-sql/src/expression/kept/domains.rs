//! The constraints of domains, checked on values.

use smol_str::SmolStr;

use crate::catalog::DomainUse;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Frame};
use crate::types::ValueRef;

/// The constraints of a domain and of those that it is over. A value that one of them refuses is an
/// error.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainConstraints {
    /// The domain. The elements of an array are checked one by one.
    pub used: DomainUse,
    /// Its schema and its name.
    known_as: (SmolStr, SmolStr),
    /// Its name in messages.
    pub name: String,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The names of the CHECK constraints and their conditions, in the order in which they are
    /// checked. VALUE is parameter 0.
    checks: Vec<(SmolStr, Expr)>,
    /// Whether the conditions depend on VALUE alone.
    is_immutable: bool,
}

impl DomainConstraints {
    /// Makes the constraints of a domain of conditions over column 0 of slot 0, which stands for
    /// VALUE.
    pub fn new(
        (used, known_as, name): (DomainUse, (SmolStr, SmolStr), String),
        not_null: bool,
        mut checks: Vec<(SmolStr, Expr)>,
    ) -> Self {
        fn replace_value(expr: &mut Expr) {
            if let Expr::Column(_) = expr {
                *expr = Expr::Parameter(0);
            }
            expr.each_child_mut(&mut replace_value);
        }
        let is_immutable = checks.iter().all(|(_, condition)| condition.is_immutable());
        checks.iter_mut().for_each(|(_, condition)| replace_value(condition));
        DomainConstraints { used, known_as, name, not_null, checks, is_immutable }
    }

    /// Returns whether the conditions depend on VALUE alone.
    pub(in crate::expression) fn is_immutable(&self) -> bool {
        self.is_immutable
    }

    /// Returns whether one of the conditions has a property.
    pub(in crate::expression) fn any(&self, has: impl Fn(&Expr) -> bool) -> bool {
        self.checks.iter().any(|(_, condition)| has(condition))
    }

    /// Checks a value. NULL satisfies a condition.
    pub fn check(&self, value: ValueRef<'_>, frame: &Frame<'_>) -> Result<()> {
        match (self.used, value) {
            (DomainUse::Value(_), value) => self.check_one(value, frame),
            (DomainUse::Elements(_), ValueRef::Array(array)) => {
                array.iter().try_for_each(|element| self.check_one(element, frame))
            }
            // The array itself may be NULL.
            (DomainUse::Elements(_), _) => Ok(()),
        }
    }

    fn check_one(&self, value: ValueRef<'_>, frame: &Frame<'_>) -> Result<()> {
        if value.is_null() && self.not_null {
            let message = format!("domain {} does not allow null values", self.name);
            return Err(self.named_in(SqlError::new(SqlState::NotNullViolation, message)));
        }
        if self.checks.is_empty() {
            return Ok(());
        }
        let parameters = [value.to_value()];
        let (clock, host) = (frame.clock, frame.host);
        let frame = Frame { slots: &[], parameters: &parameters, clock, host };
        for (name, condition) in &self.checks {
            if condition.truth(&frame)? == Some(false) {
                return Err(self.violated(name));
            }
        }
        Ok(())
    }

    #[cold]
    fn violated(&self, constraint: &str) -> SqlError {
        let domain = &self.name;
        let message =
            format!("value for domain {domain} violates check constraint \"{constraint}\"");
        self.named_in(SqlError::new(SqlState::CheckViolation, message).of_constraint(constraint))
    }

    /// Names the domain and its schema in an error.
    #[cold]
    fn named_in(&self, error: SqlError) -> SqlError {
        let (schema, name) = &self.known_as;
        // PostgreSQL names no place.
        error.of_schema(schema.to_string()).of_data_type(name.as_str()).inner()
    }
}
