//! Materialized views as views.

use super::View;
use crate::schema::tables::Table;

impl Table {
    /// Returns the view that has the query of a materialized view.
    #[must_use]
    pub fn materialized_view(&self) -> Option<View> {
        let materialized = self.materialized.as_ref()?;
        Some(View {
            id: self.id,
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: self.columns.iter().map(|column| column.name.clone()).collect(),
            query: materialized.query.clone(),
            depends_on: materialized.depends_on.clone(),
            options: Default::default(),
            defaults: Default::default(),
        })
    }

    /// Returns whether it is a materialized view that has not been populated.
    #[must_use]
    pub fn is_unpopulated(&self) -> bool {
        self.materialized.as_ref().is_some_and(|it| !it.is_populated)
    }

    /// Returns its kind as messages name it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.materialized.is_some() { "materialized view" } else { "table" }
    }
}
