//! What a session tells the audit log of its statements.

use std::sync::Arc;

use quickbeam_sql::definition_changes;

use super::Session;
use super::statement::Portal;
use crate::monitor::audit::{AuditedStatement, StatementClass, executed_name};
use crate::monitor::log::LoggedSession;

impl<'c> Session<'c> {
    /// Returns the number of changes of definitions so far, if there is an audit log and the portal
    /// begins.
    pub(super) fn audit_mark(&self, portal: &Portal<'c>) -> Option<u64> {
        (self.shared.audit.is_some() && portal.is_new()).then(definition_changes)
    }

    /// Logs a statement that was executed. `before` is the number of changes of definitions before
    /// it (AUDIT-2).
    pub(super) fn audit_done(&self, portal: &Portal<'c>, before: u64) {
        let (text, reads_only) = {
            let prepared = portal.prepared.borrow();
            (prepared.text.clone(), prepared.reads_only)
        };
        let mut class = StatementClass::of(&text, Some(reads_only));
        if class != StatementClass::Role && definition_changes() != before {
            class = StatementClass::Definition;
        }
        self.audit(class, &text, Ok(self.rows));
    }

    /// Logs a statement that failed. Without a text, the failure is one of another message.
    pub(super) fn audit_failure(&self, text: &str, code: &str) {
        if self.shared.audit.is_some() && !text.is_empty() {
            self.audit(StatementClass::of(text, None), text, Err(code));
        }
    }

    fn audit(&self, class: StatementClass, text: &str, outcome: Result<u64, &str>) {
        let Some(audit) = &self.shared.audit else { return };
        let prepared: Option<Arc<str>> = executed_name(text)
            .and_then(|name| self.connection.named_statement(&name))
            .map(|(text, _)| text);
        let class = match (&prepared, class) {
            (Some(prepared), StatementClass::Read) => StatementClass::of(prepared, None),
            (_, class) => class,
        };
        if !audit.has(class, outcome) {
            return;
        }
        let role = self.connection.setting("role").ok().flatten();
        let address = self.activity.get().address;
        let statement = AuditedStatement {
            class,
            role: role.as_deref().filter(|role| *role != "none"),
            address: address.as_deref(),
            text,
            prepared: prepared.as_deref(),
            outcome,
        };
        let session = LoggedSession { number: self.connection.session_id(), user: &self.user };
        audit.statement(session, &statement);
    }
}
