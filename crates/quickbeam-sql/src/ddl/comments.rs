//! Comments on objects.
//!
//! Those of a table, its columns and its constraints are part of the table's record. Other objects
//! have a record of their own for them, which goes when the object is removed.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::CatalogChange;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::schema::ObjectId;

/// What a comment is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommentTarget {
    /// A table, or its column of that number.
    Table(ObjectId, u16),
    /// A constraint of a table.
    Constraint(ObjectId, SmolStr),
    /// Any other object, or the column of a view.
    Object(ObjectId, u16),
}

impl Catalog {
    /// COMMENT ON. `None` removes the comment.
    pub(crate) fn set_comment(
        &self,
        transaction: &Transaction,
        target: CommentTarget,
        text: Option<Arc<str>>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        match target {
            CommentTarget::Table(id, number) => {
                let mut table = change.latest(id)?;
                match text {
                    Some(text) => table.comments.insert(number, text),
                    None => table.comments.remove(&number),
                };
                change.put_table(&table)
            }
            CommentTarget::Constraint(id, name) => {
                let mut table = change.latest(id)?;
                match text {
                    Some(text) => table.constraint_comments.insert(name, text),
                    None => table.constraint_comments.remove(&name),
                };
                change.put_table(&table)
            }
            CommentTarget::Object(id, number) => {
                let mut comments = change.before.comments.get(&id).cloned().unwrap_or_default();
                match text {
                    Some(text) => comments.0.insert(number, text),
                    None => comments.0.remove(&number),
                };
                change.put_comments(id, comments)
            }
        }
    }
}
