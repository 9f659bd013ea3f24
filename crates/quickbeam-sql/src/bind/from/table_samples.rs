//! TABLESAMPLE: a table with a sample of its rows becomes a query with a condition for each row.
//!
//! BERNOULLI and SYSTEM choose row by row. With REPEATABLE the choice depends on the row's content
//! and the seed.

use sqlparser::ast::{
    Expr as Ast, Ident, ObjectName, TableAlias, TableFactor, TableSample, TableSampleKind,
    TableSampleMethod,
};

use crate::bind::{Binder, fold};
use crate::catalog::Relation;
use crate::error::{Result, SqlError, SqlState};

/// The function that chooses rows. No statement can name it without quotes.
pub const SAMPLE: &str = "table sample";

/// Returns how many of a hundred rows a sample has.
fn percentage(sample: &TableSample) -> Result<&Ast> {
    let is_known =
        matches!(sample.name, Some(TableSampleMethod::Bernoulli | TableSampleMethod::System));
    match &sample.quantity {
        Some(quantity)
            if is_known
                && quantity.unit.is_none()
                && sample.bucket.is_none()
                && sample.offset.is_none() =>
        {
            Ok(&quantity.value)
        }
        _ => Err(SqlError::unsupported(format!("{sample} in FROM"))),
    }
}

impl Binder<'_> {
    /// Returns the query for a table with a sample of its rows.
    pub(super) fn sampled(
        &self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        sample: &TableSampleKind,
    ) -> Result<TableFactor> {
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
            sample;
        let at = |error: SqlError| error.at(self.position(name) as usize);
        let percentage = percentage(sample).map_err(at)?;
        if self.expands() {
            return Err(at(SqlError::unsupported("TABLESAMPLE in a view")));
        }
        let lookup = self.relation_name(name).map_err(at)?;
        if !matches!(self.names.relation(&lookup)?, Some(Relation::Table(_)) | None) {
            let message = "TABLESAMPLE clause can only be applied to tables and materialized views";
            return Err(at(SqlError::new(SqlState::WrongObjectType, message)));
        }
        let own = name.0.last().and_then(|part| part.as_ident());
        let own = own.cloned().unwrap_or_else(|| Ident::new("sample"));
        let row = Ident::with_quote('"', fold(&own).as_str());
        let seed = sample.seed.as_ref();
        let seed = seed.map_or_else(String::new, |it| format!(", {}, {row}::text", it.value));
        let text = format!("SELECT * FROM {name} AS {row} WHERE \"{SAMPLE}\"({percentage}{seed})");
        let alias = alias.cloned().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: own,
            columns: Vec::new(),
            at: None,
        });
        Ok(TableFactor::Derived {
            lateral: false,
            subquery: crate::parse::query(&text)?,
            alias: Some(alias),
            sample: None,
        })
    }
}
