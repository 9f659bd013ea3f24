//! RAISE, and the names of conditions.

use smol_str::SmolStr;

use super::BlockParser;
use super::lexer::LexemeKind;
use super::tree::{BlockAction, Raise};
use crate::error::{Result, SqlError, SqlState};

/// The names of conditions and their SQLSTATEs, of PostgreSQL's appendix "Error Codes".
const CONDITIONS: [(&str, &str); 62] = [
    ("no_data", "02000"),
    ("feature_not_supported", "0A000"),
    ("case_not_found", "20000"),
    ("cardinality_violation", "21000"),
    ("data_exception", "22000"),
    ("string_data_right_truncation", "22001"),
    ("numeric_value_out_of_range", "22003"),
    ("null_value_not_allowed", "22004"),
    ("invalid_datetime_format", "22007"),
    ("datetime_field_overflow", "22008"),
    ("division_by_zero", "22012"),
    ("invalid_parameter_value", "22023"),
    ("invalid_text_representation", "22P02"),
    ("array_subscript_error", "2202E"),
    ("invalid_regular_expression", "2201B"),
    ("integrity_constraint_violation", "23000"),
    ("restrict_violation", "23001"),
    ("not_null_violation", "23502"),
    ("foreign_key_violation", "23503"),
    ("unique_violation", "23505"),
    ("check_violation", "23514"),
    ("exclusion_violation", "23P01"),
    ("invalid_cursor_state", "24000"),
    ("invalid_transaction_state", "25000"),
    ("active_sql_transaction", "25001"),
    ("read_only_sql_transaction", "25006"),
    ("no_active_sql_transaction", "25P01"),
    ("dependent_objects_still_exist", "2BP01"),
    ("invalid_transaction_termination", "2D000"),
    ("transaction_rollback", "40000"),
    ("serialization_failure", "40001"),
    ("deadlock_detected", "40P01"),
    ("syntax_error_or_access_rule_violation", "42000"),
    ("syntax_error", "42601"),
    ("insufficient_privilege", "42501"),
    ("cannot_coerce", "42846"),
    ("grouping_error", "42803"),
    ("datatype_mismatch", "42804"),
    ("wrong_object_type", "42809"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_table", "42P01"),
    ("undefined_parameter", "42P02"),
    ("undefined_object", "42704"),
    ("duplicate_column", "42701"),
    ("duplicate_table", "42P07"),
    ("duplicate_function", "42723"),
    ("duplicate_object", "42710"),
    ("ambiguous_column", "42702"),
    ("ambiguous_function", "42725"),
    ("invalid_name", "42602"),
    ("insufficient_resources", "53000"),
    ("program_limit_exceeded", "54000"),
    ("object_not_in_prerequisite_state", "55000"),
    ("object_in_use", "55006"),
    ("lock_not_available", "55P03"),
    ("query_canceled", "57014"),
    ("plpgsql_error", "P0000"),
    ("raise_exception", "P0001"),
    ("no_data_found", "P0002"),
    ("too_many_rows", "P0003"),
    ("assert_failure", "P0004"),
];

/// The options of RAISE … USING.
const OPTIONS: [&str; 9] =
    ["message", "detail", "hint", "errcode", "column", "constraint", "datatype", "table", "schema"];

/// Returns the SQLSTATE of a condition.
pub fn condition_code(name: &str) -> Option<&'static str> {
    CONDITIONS.iter().find(|(known, _)| *known == name).map(|it| it.1)
}

impl BlockParser<'_> {
    /// Reads RAISE after that word.
    pub(super) fn raise(&mut self) -> Result<BlockAction> {
        let levels = ["debug", "log", "info", "notice", "warning", "exception"];
        let level = levels.into_iter().find(|level| self.takes(level)).unwrap_or("exception");
        let mut raise = Raise {
            level: level.into(),
            code: None,
            name: None,
            message: None,
            arguments: Vec::new(),
            options: Vec::new(),
        };
        if let LexemeKind::Text(message) = self.peek() {
            raise.message = Some(message.clone());
            self.at += 1;
            while self.takes_symbol(",") {
                let argument = self.expression(&[",", ";", "using"])?;
                raise.arguments.push(argument);
            }
            let message = raise.message.as_deref().unwrap_or_default().replace("%%", "");
            let wanted = message.matches('%').count();
            if wanted != raise.arguments.len() {
                let many = if wanted > raise.arguments.len() { "few" } else { "many" };
                let message = format!("too {many} parameters specified for RAISE");
                return Err(SqlError::new(SqlState::SyntaxError, message).at(self.offset()));
            }
        } else if self.takes("sqlstate") {
            let LexemeKind::Text(code) = self.peek() else { return Err(self.error()) };
            raise.code = Some(code.clone());
            self.at += 1;
        } else if !self.is_word("using") && matches!(self.peek(), LexemeKind::Word(_)) {
            let position = self.offset();
            let name = self.name()?;
            let code = condition_code(&name).ok_or_else(|| {
                let message = format!("unrecognized exception condition \"{name}\"");
                SqlError::new(SqlState::UndefinedObject, message).at(position)
            })?;
            raise.code = Some(code.to_owned());
            raise.name = Some(name);
        }
        if self.takes("using") {
            loop {
                let (at, token) = (self.offset(), self.at);
                let option: SmolStr = self.name()?;
                if !OPTIONS.contains(&&option[..]) {
                    let token = self.token(token);
                    let near = self.text.get(token.start..token.end).unwrap_or_default();
                    let message =
                        format!("unrecognized RAISE statement option at or near \"{near}\"");
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(at));
                }
                if !self.takes_symbol(":=") {
                    self.expect_symbol("=")?;
                }
                let value = self.expression(&[",", ";"])?;
                raise.options.push((option, value));
                if !self.takes_symbol(",") {
                    break;
                }
            }
        }
        self.expect_symbol(";")?;
        Ok(BlockAction::Raise(Box::new(raise)))
    }
}
