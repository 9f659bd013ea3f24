//! Errors of SQL: a SQLSTATE code that programs act on, a message for people, and where in the
//! statement.
//!
//! Above: every public function of the crate. Below: [`quickbeam::Error`], whose kinds map to codes
//! in one place. An error is one pointer wide, so that a `Result` of a small value stays small on
//! the hot path.

use std::fmt;

/// Trees of the engine whose names start like this belong to SQL; everything else is a key/value
/// database.
pub const TREE_PREFIX: &str = "sql.";

/// The result of every fallible call.
pub type Result<T> = std::result::Result<T, SqlError>;

macro_rules! sql_states {
    ($($(#[$note:meta])* $name:ident = $code:literal),* $(,)?) => {
        /// The class of an error: PostgreSQL's five-character codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SqlState {
            $($(#[$note])* $name,)*
        }

        impl SqlState {
            /// The five characters.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(SqlState::$name => $code,)*
                }
            }

            /// Returns the state of that code; `None` for one that no statement here ends with.
            #[must_use]
            pub fn of_code(code: &str) -> Option<SqlState> {
                match code {
                    $($code => Some(SqlState::$name),)*
                    _ => None,
                }
            }
        }
    };
}

sql_states! {
    /// What a notice says that is neither an error nor a warning.
    SuccessfulCompletion = "00000",
    /// A warning.
    Warning = "01000",
    /// A REVOKE that has nothing to revoke.
    PrivilegeNotRevoked = "01006",
    /// A GRANT or REVOKE of what cannot be granted.
    InvalidGrantOperation = "0LP01",
    /// A database that does not exist.
    InvalidCatalogName = "3D000",
    /// A query that must return a row returned none.
    NoData = "02000",
    /// A CASE of a procedural block without a branch for its value.
    CaseNotFound = "20000",
    /// COMMIT or ROLLBACK where a procedure may not end the transaction.
    InvalidTransactionTermination = "2D000",
    /// An assignment to a constant.
    ErrorInAssignment = "22005",
    /// A function that ended without RETURN.
    FunctionExecutedNoReturnStatement = "2F005",
    /// A function that is not volatile changes something.
    ModifyingSqlDataNotPermitted = "2F002",
    /// A trigger function that did not what triggers do.
    TriggerProtocolViolated = "39P01",
    /// A definition of a function that makes no sense.
    InvalidFunctionDefinition = "42P13",
    /// A change of a row that a trigger of the same statement has changed.
    TriggeredDataChangeViolation = "27000",
    /// RAISE without a condition.
    RaiseException = "P0001",
    /// SELECT INTO STRICT without a row.
    NoDataFound = "P0002",
    /// SELECT INTO STRICT with more than one row.
    TooManyRows = "P0003",
    /// ASSERT of what is not true.
    AssertFailure = "P0004",
    /// GET STACKED DIAGNOSTICS outside of an exception handler.
    StackedDiagnosticsAccessedWithoutActiveHandler = "0Z002",
    /// RAISE without parameters outside of an exception handler.
    ActiveErrorHandlerNotFound = "0Z000",
    /// A feature of the language that is not there.
    FeatureNotSupported = "0A000",
    /// A subquery used as an expression gave more than one row.
    CardinalityViolation = "21000",
    /// A text longer than its type allows.
    StringDataRightTruncation = "22001",
    /// A bit string that has not exactly the length of its type.
    StringDataLengthMismatch = "22026",
    /// A number outside its type's range.
    NumericValueOutOfRange = "22003",
    /// A date or time outside what can be stored.
    DatetimeFieldOverflow = "22008",
    /// A time zone further from Greenwich than any is.
    InvalidTimeZoneDisplacement = "22009",
    /// Division by zero.
    DivisionByZero = "22012",
    /// A logarithm of a number that has none.
    InvalidArgumentForLogarithm = "2201E",
    /// A power that is not defined.
    InvalidArgumentForPower = "2201F",
    /// A sample of less than no rows, or of more than all.
    InvalidTablesampleArgument = "2202H",
    /// Bounds or a count that `width_bucket` cannot use.
    InvalidArgumentForWidthBucket = "2201G",
    /// A negative LIMIT.
    InvalidRowCountInLimit = "2201W",
    /// A negative OFFSET.
    InvalidRowCountInOffset = "2201X",
    /// An empty text where one with characters is required.
    ZeroLengthCharacterString = "2200F",
    /// A NULL where a value is required.
    NullValueNotAllowed = "22004",
    /// The offset of a window frame is negative.
    InvalidPrecedingOrFollowingSize = "22013",
    /// The argument of `ntile` is not positive.
    InvalidArgumentForNtile = "22014",
    /// A field of an interval is too large.
    IntervalFieldOverflow = "22015",
    /// The argument of `nth_value` is not positive.
    InvalidArgumentForNthValue = "22016",
    /// A function's argument has no meaning.
    InvalidParameterValue = "22023",
    /// A negative length of a part of a text.
    SubstringError = "22011",
    /// A character that cannot be a text.
    UntranslatableCharacter = "22P05",
    /// An index outside a value.
    ArraySubscriptError = "2202E",
    /// A value of the wrong kind or form.
    DataException = "22000",
    /// Bytes that are not UTF-8, or a zero character in a text.
    CharacterNotInRepertoire = "22021",
    /// An escape character that a pattern may not have there.
    InvalidUseOfEscapeCharacter = "2200C",
    /// An ESCAPE that is no single character, or escapes nothing.
    InvalidEscapeSequence = "22025",
    /// invalid_argument_for_sql_json_datetime_function
    InvalidArgumentForSqlJsonDatetime = "22031",
    /// A subscript of a jsonpath that is no number, or out of bounds.
    InvalidSqlJsonSubscript = "22033",
    /// An item of a jsonpath that has to be a number.
    NonNumericSqlJsonItem = "22036",
    /// Several items of a jsonpath, or none, where there has to be one.
    SingletonSqlJsonItemRequired = "22038",
    /// An item of a jsonpath that has to be an array.
    SqlJsonArrayNotFound = "22039",
    /// A member that an object has not.
    SqlJsonMemberNotFound = "2203A",
    /// The operand of a sign in a jsonpath that is no number.
    SqlJsonNumberNotFound = "2203B",
    /// An item of a jsonpath that has to be an object.
    SqlJsonObjectNotFound = "2203C",
    /// A regular expression with invalid syntax.
    InvalidRegularExpression = "2201B",
    /// A sequence has given out all its values.
    SequenceGeneratorLimitExceeded = "2200H",
    /// A text that does not spell a value of the type wanted.
    InvalidTextRepresentation = "22P02",
    /// Bytes that are not the binary form of a value.
    InvalidBinaryRepresentation = "22P03",
    /// A date or time that does not read as one.
    InvalidDatetimeFormat = "22007",
    /// A line of COPY that does not fit the table.
    BadCopyFileFormat = "22P04",
    /// A rule about the data, of no more special kind.
    IntegrityConstraintViolation = "23000",
    /// RESTRICT of a foreign key.
    RestrictViolation = "23001",
    /// A NULL where none may be.
    NotNullViolation = "23502",
    /// A foreign key that points nowhere, or a key that is still pointed at.
    ForeignKeyViolation = "23503",
    /// A second row with the same key.
    UniqueViolation = "23505",
    /// A CHECK that is false.
    CheckViolation = "23514",
    /// BEGIN inside a transaction.
    ActiveSqlTransaction = "25001",
    /// A change in a read-only transaction.
    ReadOnlySqlTransaction = "25006",
    /// COMMIT or SAVEPOINT outside a transaction.
    NoActiveSqlTransaction = "25P01",
    /// A statement after an error in the same transaction.
    InFailedSqlTransaction = "25P02",
    /// No prepared statement of that name.
    InvalidSqlStatementName = "26000",
    /// A cursor that is not on a row that can be changed.
    InvalidCursorState = "24000",
    /// No cursor of that name.
    InvalidCursorName = "34000",
    /// A cursor of that name exists already.
    DuplicateCursor = "42P03",
    /// The statement of a cursor returns no rows.
    InvalidCursorDefinition = "42P11",
    /// A prepared statement of that name exists already.
    DuplicatePreparedStatement = "42P05",
    /// Something else depends on what was to be dropped.
    DependentObjectsStillExist = "2BP01",
    /// No savepoint of that name.
    InvalidSavepointSpecification = "3B001",
    /// No schema of that name.
    InvalidSchemaName = "3F000",
    /// A statement makes an object in another schema than its own.
    InvalidSchemaDefinition = "42P15",
    /// Others committed a conflicting change: begin again.
    SerializationFailure = "40001",
    /// Transactions waited for each other: begin again.
    DeadlockDetected = "40P01",
    /// What kind of mistake is not said more precisely.
    SyntaxErrorOrAccessRuleViolation = "42000",
    /// The statement does not read as SQL.
    SyntaxError = "42601",
    /// A name that may mean two columns.
    AmbiguousColumn = "42702",
    /// A column named twice.
    DuplicateColumn = "42701",
    /// A name that is no column.
    UndefinedColumn = "42703",
    /// A name that is no constraint, type or other object.
    UndefinedObject = "42704",
    /// An object that exists already.
    DuplicateObject = "42710",
    /// A table alias given twice.
    DuplicateAlias = "42712",
    /// A function call that fits several functions.
    AmbiguousFunction = "42725",
    /// A column that is neither grouped nor aggregated, or an aggregate where none may be.
    GroupingError = "42803",
    /// A recursive query that refers to itself where it must not.
    InvalidRecursion = "42P19",
    /// A misplaced window function, or an invalid window definition.
    WindowingError = "42P20",
    /// Operands of different collations.
    CollationMismatch = "42P21",
    /// A comparison of texts whose collation cannot be determined.
    IndeterminateCollation = "42P22",
    /// A value of the wrong type.
    DatatypeMismatch = "42804",
    /// An object of the wrong kind: a view where a table is needed.
    WrongObjectType = "42809",
    /// A foreign key that cannot be.
    InvalidForeignKey = "42830",
    /// A cast that does not exist.
    CannotCoerce = "42846",
    /// A function or operator that does not exist for these types.
    UndefinedFunction = "42883",
    /// A name that is too long or otherwise impossible.
    InvalidName = "42602",
    /// A name that the system keeps for itself.
    ReservedName = "42939",
    /// A table that does not exist.
    UndefinedTable = "42P01",
    /// A parameter that the statement does not have, or that has no value.
    UndefinedParameter = "42P02",
    /// A schema that exists already.
    DuplicateSchema = "42P06",
    /// A table or view that exists already.
    DuplicateTable = "42P07",
    /// A function that exists already.
    DuplicateFunction = "42723",
    /// A column reference that does not hold here.
    InvalidColumnReference = "42P10",
    /// An object whose definition cannot be: an expression that must be immutable is not.
    InvalidObjectDefinition = "42P17",
    /// A column definition that cannot be.
    InvalidColumnDefinition = "42611",
    /// A table definition that cannot be.
    InvalidTableDefinition = "42P16",
    /// A parameter whose type cannot be determined.
    IndeterminateDatatype = "42P18",
    /// A value given for a column that is always generated.
    GeneratedAlways = "428C9",
    /// Something that the connection is not allowed to do.
    InsufficientPrivilege = "42501",
    /// The WITH CHECK OPTION of a view.
    WithCheckOptionViolation = "44000",
    /// No resources left, of no more special kind.
    InsufficientResources = "53000",
    /// No room on the device.
    DiskFull = "53100",
    /// The statement's memory budget is used up.
    OutOfMemory = "53200",
    /// A limit of the engine: open transactions, for example.
    ConfigurationLimitExceeded = "53400",
    /// A statement beyond what the program takes.
    ProgramLimitExceeded = "54000",
    /// Nested too deep.
    StatementTooComplex = "54001",
    /// Too many columns.
    TooManyColumns = "54011",
    /// The object is not in the state needed, for example still in use.
    ObjectNotInPrerequisiteState = "55000",
    /// The object is in use, for example by a query whose rows are being read.
    ObjectInUse = "55006",
    /// A setting that cannot be changed.
    CannotChangeRuntimeParameter = "55P02",
    /// Another transaction kept a record for longer than the lock timeout.
    LockNotAvailable = "55P03",
    /// A client does not follow the protocol.
    ProtocolViolation = "08P01",
    /// The connection to a server cannot be made, or was lost.
    ConnectionFailure = "08006",
    /// The server ended the session.
    AdminShutdown = "57P01",
    /// The statement was cancelled.
    QueryCanceled = "57014",
    /// The environment no longer takes work.
    CannotConnectNow = "57P03",
    /// The operating system reported an error.
    IoError = "58030",
    /// A file that does not exist.
    UndefinedFile = "58P01",
    /// Something that cannot be: a fault in Quickbeam.
    InternalError = "XX000",
    /// Stored bytes are not what was written.
    DataCorrupted = "XX001",
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An error of a statement, with its SQLSTATE.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::open_in_memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// use quickbeam_sql::SqlState;
///
/// let error = connection.execute("SELECT nme FROM fruit", &[]).unwrap_err();
/// assert_eq!(error.state(), SqlState::UndefinedColumn);
/// assert_eq!((error.code(), error.position()), ("42703", Some(7)));
/// println!("{error}");
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub struct SqlError {
    content: Box<Content>,
}

struct Content {
    state: SqlState,
    /// A SQLSTATE that a function raised and that is none of the known ones.
    code: Option<&'static str>,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
    /// Whether the error is one of a statement within a function, which has no place in the
    /// statement that called it.
    is_inner: bool,
    object: ViolatedObject,
    context: Option<String>,
    cause: Option<quickbeam::Error>,
}

/// What a violated constraint belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ViolatedObject {
    schema: Option<String>,
    table: Option<String>,
    column: Option<String>,
    constraint: Option<String>,
    data_type: Option<String>,
}

impl SqlError {
    /// An error with its code and message.
    #[cold]
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        let message = message.into();
        let content = Content {
            state,
            code: None,
            message,
            detail: None,
            hint: None,
            position: None,
            is_inner: false,
            object: ViolatedObject::default(),
            context: None,
            cause: None,
        };
        SqlError { content: Box::new(content) }
    }

    /// A state of things that cannot be.
    #[cold]
    pub fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::InternalError, message)
    }

    /// Something of the language that is not there.
    #[cold]
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::FeatureNotSupported, format!("{what} is not supported"))
    }

    /// Stored bytes that do not make sense.
    #[cold]
    pub fn corrupted(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::DataCorrupted, message)
    }

    /// With more about the data at hand.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.content.detail = Some(detail.into());
        self
    }

    /// Without its detail, which has values that the role may not see.
    #[must_use]
    pub(crate) fn without_detail(mut self) -> SqlError {
        self.content.detail = None;
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.content.hint = Some(hint.into());
        self
    }

    /// With the place in the statement, in bytes from its start, unless a place is known already.
    #[must_use]
    pub fn at(mut self, position: usize) -> SqlError {
        if !self.content.is_inner {
            self.content.position.get_or_insert(position);
        }
        self
    }

    /// With its place counted from the start of a text in which the statement stands so far in.
    #[must_use]
    pub(crate) fn shifted(mut self, by: usize) -> SqlError {
        self.content.position = self.content.position.map(|position| position.saturating_add(by));
        self
    }

    /// Without a place: the statement is not the one that was sent.
    #[must_use]
    pub(crate) fn without_place(mut self) -> SqlError {
        self.content.position = None;
        self
    }

    /// As an error in a body that begins at a place: a syntax error has that place, others none.
    #[must_use]
    pub(crate) fn of_body(self, position: usize) -> SqlError {
        match self.content.state {
            SqlState::SyntaxError => self.without_place().at(position),
            _ => self,
        }
    }

    /// As the error of a statement within a function.
    #[must_use]
    pub(crate) fn inner(mut self) -> SqlError {
        self.content.position = None;
        self.content.is_inner = true;
        self
    }

    /// With a SQLSTATE of the program's own.
    #[must_use]
    pub(crate) fn with_code(mut self, code: &'static str) -> SqlError {
        self.content.code = Some(code);
        self
    }

    /// With the name of the constraint that was violated.
    #[must_use]
    pub fn of_constraint(mut self, name: impl Into<String>) -> SqlError {
        self.content.object.constraint = Some(name.into());
        self
    }

    /// With the table of the constraint that was violated, and the table's schema.
    #[must_use]
    pub fn of_table(mut self, schema: &str, table: &str) -> SqlError {
        self.content.object.schema = Some(schema.into());
        self.content.object.table = Some(table.into());
        self
    }

    /// With the schema that a function named in its error.
    pub(crate) fn of_schema(mut self, schema: String) -> SqlError {
        self.content.object.schema = Some(schema);
        self
    }

    /// With the table that a function named in its error.
    pub(crate) fn of_named_table(mut self, table: String) -> SqlError {
        self.content.object.table = Some(table);
        self
    }

    /// With the name of the type whose constraint was violated.
    pub(crate) fn of_data_type(mut self, name: impl Into<String>) -> SqlError {
        self.content.object.data_type = Some(name.into());
        self
    }

    /// With the name of the column whose constraint was violated.
    #[must_use]
    pub fn of_column(mut self, name: impl Into<String>) -> SqlError {
        self.content.object.column = Some(name.into());
        self
    }

    /// With what was being done: the line of the input, for example. It comes on a line of its own
    /// after what was being done inside of it.
    #[must_use]
    pub fn in_context(mut self, context: impl Into<String>) -> SqlError {
        match &mut self.content.context {
            Some(inner) => {
                inner.push('\n');
                inner.push_str(&context.into());
            }
            none => *none = Some(context.into()),
        }
        self
    }

    /// The class of the error.
    #[must_use]
    pub fn state(&self) -> SqlState {
        self.content.state
    }

    /// The five characters of its class.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.content.code.unwrap_or_else(|| self.content.state.code())
    }

    /// What went wrong, in a sentence without a full stop.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.content.message
    }

    /// More about the data at hand.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.content.detail.as_deref()
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.content.hint.as_deref()
    }

    /// Bytes from the start of the statement to the place of the error.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.content.position
    }

    /// The place of the error as PostgreSQL counts it: in characters, the first of which is 1.
    /// `text` is what was executed.
    #[must_use]
    pub fn character_position(&self, text: &str) -> Option<usize> {
        let before = text.get(..self.content.position?)?;
        Some(before.chars().count() + 1)
    }

    /// What was being done: the line of the input, for example.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.content.context.as_deref()
    }

    /// The constraint that was violated.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        self.content.object.constraint.as_deref()
    }

    /// The schema of the table whose constraint was violated.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.content.object.schema.as_deref()
    }

    /// The table whose constraint was violated.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.content.object.table.as_deref()
    }

    /// The column that was NULL and may not be.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        self.content.object.column.as_deref()
    }

    /// The type whose constraint was violated.
    #[must_use]
    pub fn data_type_name(&self) -> Option<&str> {
        self.content.object.data_type.as_deref()
    }

    /// Returns whether the same transaction, begun again, may succeed.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let mut connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// let error = connection.execute("SELECT 1 / 0", &[]).unwrap_err();
    /// assert!(!error.is_retryable());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let states = [
            SqlState::SerializationFailure,
            SqlState::DeadlockDetected,
            SqlState::LockNotAvailable,
        ];
        states.contains(&self.content.state)
    }
}

/// What `main` and `unwrap` print: the fields that are set.
impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Content { message, position, object, cause, .. } = &*self.content;
        let mut fields = f.debug_struct("SqlError");
        fields.field("code", &self.code()).field("message", message);
        if let Some(position) = position {
            fields.field("position", position);
        }
        let texts = [
            ("detail", self.detail()),
            ("hint", self.hint()),
            ("context", self.content.context.as_deref()),
            ("schema", object.schema.as_deref()),
            ("table", object.table.as_deref()),
            ("column", object.column.as_deref()),
            ("constraint", object.constraint.as_deref()),
            ("data_type", object.data_type.as_deref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.field(name, &text);
            }
        }
        if let Some(cause) = cause {
            fields.field("cause", cause);
        }
        fields.finish()
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.content.message, self.code())
    }
}

impl std::error::Error for SqlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.content.cause.as_ref().map(|cause| cause as _)
    }
}

impl SqlError {
    /// Returns the error of a cancelled statement.
    #[cold]
    pub fn canceled() -> SqlError {
        SqlError::new(SqlState::QueryCanceled, "canceling statement due to user request")
    }
}

impl From<quickbeam::Error> for SqlError {
    #[cold]
    fn from(error: quickbeam::Error) -> SqlError {
        use quickbeam::Error as E;
        let state = match &error {
            E::WriteConflict | E::SerializationFailure | E::SnapshotTooOld => {
                SqlState::SerializationFailure
            }
            // A table's tree gets a new name when its definition changes: a transaction that still
            // uses the old name must be retried.
            E::NoSuchDatabase { name } if name.starts_with(TREE_PREFIX) => {
                SqlState::SerializationFailure
            }
            E::Deadlock => SqlState::DeadlockDetected,
            E::LockTimeout { .. } | E::UndoLimit { .. } => SqlState::LockNotAvailable,
            E::ReadOnly | E::ReadOnlyEnvironment => SqlState::ReadOnlySqlTransaction,
            E::Interrupted => return SqlError::canceled(),
            E::Corruption { .. } | E::FormatVersion { .. } => SqlState::DataCorrupted,
            E::DiskFull { .. } => SqlState::DiskFull,
            E::Io { .. } => SqlState::IoError,
            E::Failed { .. } | E::Locked { .. } | E::NotAnEnvironment { .. } => {
                SqlState::CannotConnectNow
            }
            E::KeyTooLong { .. } | E::ValueTooLong { .. } => SqlState::ProgramLimitExceeded,
            E::NoSuchDatabase { .. } => SqlState::UndefinedTable,
            E::DatabaseExists { .. } => SqlState::DuplicateTable,
            E::Limit { .. } => SqlState::ConfigurationLimitExceeded,
            E::Misuse { .. } => SqlState::ObjectNotInPrerequisiteState,
            _ => SqlState::InternalError,
        };
        let mut converted = SqlError::new(state, error.to_string());
        converted.content.cause = Some(error);
        converted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_errors_keep_what_the_caller_can_do() {
        let too_long = quickbeam::TooLong { length: 9, limit: 8 };
        let cases = [
            (quickbeam::Error::WriteConflict, "40001", true),
            (quickbeam::Error::Deadlock, "40P01", true),
            (quickbeam::Error::LockTimeout { waited_ms: 5 }, "55P03", true),
            (quickbeam::Error::DiskFull { action: "writing".into() }, "53100", false),
            (quickbeam::Error::NoSuchDatabase { name: "fruit".into() }, "42P01", false),
            (quickbeam::Error::NoSuchDatabase { name: "sql.7.1".into() }, "40001", true),
            (quickbeam::Error::KeyTooLong(Box::new(too_long)), "54000", false),
        ];
        for (error, code, retryable) in cases {
            let converted = SqlError::from(error);
            assert_eq!((converted.code(), converted.is_retryable()), (code, retryable));
            assert!(std::error::Error::source(&converted).is_some());
        }
    }

    #[test]
    fn the_first_position_stays() {
        let error = SqlError::new(SqlState::SyntaxError, "no").at(7).at(9);
        assert_eq!(error.position(), Some(7));
        assert_eq!(size_of::<SqlError>(), size_of::<usize>());
    }
}
