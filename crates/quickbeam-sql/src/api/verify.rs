//! Verification of what SQL keeps in an environment: the catalog, rows, indexes, constraints and
//! sequences against each other.
//!
//! Above: `quickbeam verify`. Below: the catalog, the audit of one table. That the trees themselves
//! are sound is the engine's to verify.

use std::collections::HashMap;
use std::sync::Arc;

use quickbeam::{AccessMethod, ReadTransaction, Transaction};

use crate::bind::{Names, check_of, generated_columns};
use crate::catalog::{
    BOOTSTRAP, CATALOG, CatalogSnapshot, ObjectId, SEQUENCES, TREE_PREFIX, Table, shown_name,
};
use crate::compile::CompileContext;
use crate::error::Result;
use crate::expression::{Clock, Current, Expr, Frame, Slot};
use crate::handle::{index_tree, rows_tree};
use crate::plan::ExecutionMode;
use crate::session::database::SqlDatabase;
use crate::table::{Audit, StoredRow};

/// What was verified, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Tables.
    pub tables: usize,
    /// Rows in them.
    pub rows: u64,
    /// Entries of their indexes.
    pub entries: u64,
    /// What is wrong; each names the object and, of a row, its key. Empty when all is well.
    pub complaints: Vec<String>,
}

impl SqlDatabase {
    /// Verifies the catalog, and of each table the rows, the entries of its indexes and its
    /// constraints, as of one moment.
    pub fn verify(&self) -> Result<Verified> {
        let view = self.environment.begin_read()?;
        let transaction = view.as_transaction();
        let snapshot = match self.catalog.snapshot(transaction) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let complaints = vec![format!("the catalog cannot be read: {}", error.message())];
                return Ok(Verified { complaints, ..Verified::default() });
            }
        };
        let mut verified = Verified::default();
        self.verify_trees(&snapshot, transaction, &mut verified.complaints)?;
        self.verify_references(&snapshot, transaction, &mut verified.complaints);
        for table in snapshot.tables() {
            verified.tables += 1;
            self.verify_table(table, &snapshot, transaction, &mut verified);
        }
        Ok(verified)
    }

    /// Every table and index has its tree, and no other tree is SQL's.
    fn verify_trees(
        &self,
        snapshot: &CatalogSnapshot,
        transaction: &Transaction,
        complaints: &mut Vec<String>,
    ) -> Result<()> {
        let mut expected: HashMap<String, (String, AccessMethod)> = HashMap::new();
        for table in snapshot.tables() {
            let name = format!("table \"{}\"", shown_name(&table.lookup_name()));
            for index in &table.indexes {
                let name = format!("{name}, index \"{}\"", index.name);
                expected.insert(index_tree(index.id), (name, index.access_method()));
            }
            expected.insert(rows_tree(table), (name, table.access_method()));
        }
        let own = [CATALOG, SEQUENCES];
        for tree in self.environment.databases()? {
            if !tree.starts_with(TREE_PREFIX) || own.contains(&tree.as_str()) {
                continue;
            }
            let Some((name, method)) = expected.remove(&tree) else {
                complaints.push(format!("database \"{tree}\" belongs to no table and no index"));
                continue;
            };
            let found = transaction.open_database(&tree)?.access_method();
            if found != method {
                complaints.push(format!("{name}: its tree is of type {found}, not {method}"));
            }
        }
        let mut missing: Vec<String> = expected
            .into_values()
            .map(|(name, _)| format!("{name}: its tree is missing"))
            .collect();
        missing.sort();
        complaints.append(&mut missing);
        Ok(())
    }

    /// Objects that others name are there, and sequences have their values.
    fn verify_references(
        &self,
        snapshot: &CatalogSnapshot,
        transaction: &Transaction,
        complaints: &mut Vec<String>,
    ) {
        for table in snapshot.tables() {
            for column in &table.columns {
                let lost = |sequence| snapshot.sequence(sequence).is_none();
                if column.identity.is_some_and(|identity| lost(identity.sequence)) {
                    let (table, column) = (&table.name, &column.name);
                    complaints.push(format!("table \"{table}\", column \"{column}\": no sequence"));
                }
            }
            for key in table.foreign_keys.iter().filter(|key| snapshot.table(key.parent).is_none())
            {
                let (table, key) = (&table.name, &key.name);
                complaints
                    .push(format!("table \"{table}\", foreign key \"{key}\": no table is there"));
            }
        }
        for view in snapshot.all_views() {
            let lost = |id: &ObjectId| snapshot.table(*id).is_none() && !snapshot.is_view(*id);
            // A key/value database has no number.
            if view.depends_on.iter().filter(|id| id.0 != 0).any(lost) {
                complaints.push(format!("view \"{}\": what it reads is not there", view.name));
            }
        }
        for sequence in snapshot.sequences() {
            if let Err(error) = self.catalog.next_unreserved(transaction, sequence) {
                complaints.push(format!(
                    "sequence \"{}\": {}",
                    shown_name(&sequence.lookup_name()),
                    error.message()
                ));
            }
        }
    }

    fn verify_table(
        &self,
        table: &Arc<Table>,
        snapshot: &Arc<CatalogSnapshot>,
        transaction: &Transaction,
        verified: &mut Verified,
    ) {
        let clock = Clock::default();
        let look = CompileContext {
            catalog: &self.catalog,
            transaction,
            snapshot,
            way: ExecutionMode::Auto,
            user: BOOTSTRAP,
            session_user: BOOTSTRAP,
            role: None,
            path: None,
            temporary: None,
            turned_off: Default::default(),
            parallelism: Default::default(),
            functions: &self.shared.functions,
            clock: &clock,
            variables: None,
            types: &[],
            refreshed: None,
            keeps_keys: false,
            keeps_numbers: false,
            noted: None,
        };
        let name = format!("table \"{}\"", shown_name(&table.lookup_name()));
        let checked = || -> Result<(u64, u64, Vec<String>)> {
            let handle = snapshot.handle(transaction, table.id)?;
            let mut checks = Vec::with_capacity(table.checks.len());
            for check in table.checks.iter().filter(|check| !check.not_valid) {
                let condition = check_of(&look as &dyn Names, table, &check.expression, 0)?;
                // Such a condition was checked with the settings of the session that wrote the row.
                if !condition.reads_settings() {
                    checks.push((check.name.as_str(), condition));
                }
            }
            let generated = generated_columns(&look as &dyn Names, table, 0, None)?;
            let mut slots = [Slot::new(Some(table.clone()))];
            let mut audit = Audit::new(transaction, snapshot, &handle)?;
            let (rows, entries) =
                audit.run(&mut |row| violated(&checks, &generated, &mut slots, row));
            Ok((rows, entries, audit.complaints()))
        };
        match checked() {
            Ok((rows, entries, complaints)) => {
                verified.rows += rows;
                verified.entries += entries;
                verified.complaints.extend(complaints);
            }
            Err(error) => verified.complaints.push(format!("{name}: {}", error.message())),
        }
    }
}

/// The CHECK constraints that a row does not keep to, and its generated columns that have another
/// value than their expressions.
fn violated(
    checks: &[(&str, Expr)],
    generated: &[(usize, Expr)],
    slots: &mut [Slot; 1],
    row: StoredRow<'_>,
) -> Vec<String> {
    if checks.is_empty() && generated.is_empty() {
        return Vec::new();
    }
    let [slot] = slots;
    slot.bytes.clear();
    slot.bytes.extend_from_slice(row.bytes());
    slot.current = Current::Bytes(0, slot.bytes.len());
    let frame = Frame { slots, ..Frame::of_parameters(&[]) };
    let problem = |(name, condition): &(&str, Expr)| match condition.truth(&frame) {
        Ok(Some(false)) => Some(format!("CHECK constraint \"{name}\" does not hold")),
        Ok(_) => None,
        Err(error) => Some(format!("CHECK constraint \"{name}\": {}", error.message())),
    };
    let is_wrong = |(column, value): &&(usize, Expr)| {
        let stored = row.get(*column).ok();
        let computed = value.evaluate(&frame);
        computed.is_err()
            || computed.ok().map(|it| it.into_value()) != stored.map(|it| it.to_value())
    };
    let other_value = |(column, _): &(usize, Expr)| {
        format!("generated column {} has another value than its expression", column + 1)
    };
    let problems = checks.iter().filter_map(problem);
    problems.chain(generated.iter().filter(is_wrong).map(other_value)).collect()
}
