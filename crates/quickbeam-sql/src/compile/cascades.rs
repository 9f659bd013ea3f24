//! What the rows that change because of foreign keys need evaluated: CHECK, DEFAULT and generated
//! columns.
//!
//! Above: sessions, which execute statements. Below: the binder, tables.

use super::CompileContext;
use crate::bind::{Names, check_of, column_default, column_domain_check, generated_columns};
use crate::catalog::Table;
use crate::error::Result;
use crate::expression::{Expr, Frame, Slot};
use crate::table::{Expressions, StoredRow};
use crate::types::Value;

/// Checks and defaults of rows that change because others did.
pub(crate) struct Cascades<'c> {
    /// Makes the context, which few statements need.
    pub look: &'c dyn Fn() -> CompileContext<'c>,
}

impl Expressions for Cascades<'_> {
    fn check(&self, table: &Table, check: usize, row: StoredRow<'_>) -> Result<Option<bool>> {
        let Some(known) = table.checks.get(check) else { return Ok(Some(true)) };
        let look = (self.look)();
        let condition = check_of(&look as &dyn Names, table, &known.expression, 0)?;
        let slots = [Slot::of_row(table, row)];
        let clock = Some(look.clock);
        condition.truth(&Frame { slots: &slots, clock, ..Frame::of_parameters(&[]) })
    }

    fn check_domains(&self, table: &Table, changed: &[usize], row: StoredRow<'_>) -> Result<()> {
        let of_domain = |at: &&usize| table.columns.get(**at).is_some_and(|it| it.domain.is_some());
        for position in changed.iter().filter(of_domain) {
            let look = (self.look)();
            let names = &look as &dyn Names;
            let Some(check) = column_domain_check(names, table, *position, 0)? else { continue };
            let slots = [Slot::of_row(table, row)];
            let clock = Some(look.clock);
            check.truth(&Frame { slots: &slots, clock, ..Frame::of_parameters(&[]) })?;
        }
        Ok(())
    }

    fn generated(
        &self,
        table: &Table,
        changed: &[usize],
        row: StoredRow<'_>,
    ) -> Result<Vec<(usize, Value)>> {
        if table.columns.iter().all(|column| column.generated.is_none()) {
            return Ok(Vec::new());
        }
        let expressions = generated_columns(&(self.look)() as &dyn Names, table, 0, Some(changed))?;
        let slots = [Slot::of_row(table, row)];
        let frame = Frame { slots: &slots, ..Frame::of_parameters(&[]) };
        let value =
            |(column, value): &(usize, Expr)| Ok((*column, value.evaluate(&frame)?.into_value()));
        expressions.iter().map(value).collect()
    }

    fn default(&self, table: &Table, column: usize) -> Result<Value> {
        let look = (self.look)();
        match column_default(&look as &dyn Names, table, column)? {
            None => Ok(Value::Null),
            Some(default) => {
                let frame = Frame { clock: Some(look.clock), ..Frame::of_parameters(&[]) };
                Ok(default.evaluate(&frame)?.into_value())
            }
        }
    }
}
