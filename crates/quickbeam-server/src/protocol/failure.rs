//! Errors of statements and of the protocol, as error messages to the client.

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::ErrorResponse;
use quickbeam_sql::{Notice, SqlError};

/// Why a request failed. The connection goes on.
#[derive(Debug)]
pub enum Failure {
    /// A statement failed.
    Sql(SqlError),
    /// The client asked for something that cannot be: SQLSTATE and message.
    Protocol(&'static str, String),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Sql(error)
    }
}

impl Failure {
    /// A failure of the protocol.
    pub fn new(code: &'static str, message: impl Into<String>) -> Failure {
        Failure::Protocol(code, message.into())
    }

    /// Returns the SQLSTATE.
    pub fn code(&self) -> &str {
        match self {
            Failure::Sql(error) => error.code(),
            Failure::Protocol(code, _) => code,
        }
    }

    /// Returns the error message for a statement whose text is `text`, which begins `before`
    /// characters into the client's text.
    pub fn response(&self, text: &str, before: usize) -> PgWireBackendMessage {
        match self {
            Failure::Sql(error) => of_statement(error, text, before),
            Failure::Protocol(code, message) => response("ERROR", code, message),
        }
    }
}

/// Returns the error message of an error that ends the connection.
pub fn fatal(code: &str, message: &str) -> PgWireBackendMessage {
    response("FATAL", code, message)
}

fn response(severity: &str, code: &str, message: &str) -> PgWireBackendMessage {
    PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields(severity, code, message)))
}

/// Returns the fields of a notice.
pub fn notice_fields(notice: &Notice) -> Vec<(u8, String)> {
    let mut fields = fields(notice.severity, notice.code, &notice.message);
    let optional = [(b'D', &notice.detail), (b'H', &notice.hint)];
    fields.extend(optional.into_iter().filter_map(|(field, text)| Some((field, text.clone()?))));
    fields
}

fn fields(severity: &str, code: &str, message: &str) -> Vec<(u8, String)> {
    let fields = [(b'S', severity), (b'V', severity), (b'C', code), (b'M', message)];
    fields.map(|(field, text)| (field, text.to_owned())).into()
}

fn of_statement(error: &SqlError, text: &str, before: usize) -> PgWireBackendMessage {
    let mut fields = fields("ERROR", error.code(), error.message());
    let position = error.character_position(text).map(|at| (before + at).to_string());
    let optional = [
        (b'D', error.detail().map(str::to_owned)),
        (b'H', error.hint().map(str::to_owned)),
        (b'P', position),
        (b'W', error.context().map(str::to_owned)),
        (b's', error.schema().map(str::to_owned)),
        (b't', error.table().map(str::to_owned)),
        (b'c', error.column().map(str::to_owned)),
        (b'd', error.data_type_name().map(str::to_owned)),
        (b'n', error.constraint().map(str::to_owned)),
    ];
    fields.extend(optional.into_iter().filter_map(|(field, text)| Some((field, text?))));
    PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields))
}
