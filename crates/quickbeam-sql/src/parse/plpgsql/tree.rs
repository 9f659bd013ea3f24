//! The tree of a PL/pgSQL body.

use std::sync::Arc;

use smol_str::SmolStr;

use crate::schema::DomainUse;
use crate::types::DataType;
use crate::types::collation::Derivation;

/// A statement or expression in a body: its number in [`BlockBody::fragments`].
pub type FragmentId = usize;

/// A text that the parser of statements reads.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The statement; an expression has SELECT before it.
    pub text: Arc<str>,
    /// The namespace in which its names are looked up.
    pub namespace: usize,
}

/// What a variable holds.
#[derive(Clone, Debug)]
pub enum VariableKind {
    /// A value of a type.
    Scalar(DataType),
    /// A value of a domain, or an array of such values: of this type.
    Domain(DataType, DomainUse),
    /// A text of a type under a collation.
    Collated(DataType, Derivation),
    /// A row with these columns; without columns: that of the last assignment.
    Record(RecordFields),
}

/// The columns of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFields {
    /// Their names and types.
    pub fields: Vec<(SmolStr, DataType)>,
    /// Their collations; none if all have the default one.
    pub collations: Vec<Derivation>,
}

impl RecordFields {
    /// Makes columns of these names, types and collations.
    pub fn new(columns: impl Iterator<Item = (SmolStr, DataType, Derivation)>) -> RecordFields {
        let mut made = RecordFields::default();
        for (name, data_type, collation) in columns {
            made.fields.push((name, data_type));
            made.collations.push(collation);
        }
        if made.collations.iter().all(|it| *it == Derivation::Default) {
            made.collations.clear();
        }
        made
    }

    /// Returns the collation of a column.
    pub fn collation(&self, at: usize) -> Derivation {
        self.collations.get(at).copied().unwrap_or_default()
    }

    /// Returns what is known of the collation of all columns together.
    pub fn common_collation(&self) -> Derivation {
        let all = self.collations.iter().map(|it| it.as_column());
        let joined = all.reduce(|a, b| a.join(b).unwrap_or(a));
        joined.unwrap_or_default()
    }
}

impl std::ops::Deref for RecordFields {
    type Target = [(SmolStr, DataType)];

    fn deref(&self) -> &Self::Target {
        &self.fields
    }
}

impl From<Vec<(SmolStr, DataType)>> for RecordFields {
    fn from(fields: Vec<(SmolStr, DataType)>) -> RecordFields {
        RecordFields { fields, collations: Vec::new() }
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub struct BlockVariable {
    /// Its name.
    pub name: SmolStr,
    /// What it holds.
    pub kind: VariableKind,
    /// NOT NULL.
    pub not_null: bool,
    /// CONSTANT.
    pub constant: bool,
    /// The value that it begins with.
    pub initial: Option<FragmentId>,
    /// The cursor that it is declared as.
    pub cursor: Option<CursorDeclaration>,
    /// The line of its declaration, or 0.
    pub line: usize,
}

/// CURSOR FOR.
#[derive(Clone, Debug)]
pub struct CursorDeclaration {
    /// The variables of its arguments.
    pub arguments: Vec<usize>,
    /// Its query.
    pub query: FragmentId,
    /// SCROLL or NO SCROLL.
    pub scroll: Option<bool>,
}

/// What OPEN reads.
#[derive(Clone, Debug)]
pub enum CursorSource {
    /// The query of the declaration, with values for the variables of its arguments.
    Bound(Vec<(usize, FragmentId)>),
    /// A query, with SCROLL or NO SCROLL.
    Query(BodyQuery, Option<bool>),
}

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, Debug)]
pub enum CursorMove {
    /// A number of rows on, or back if negative.
    By(i64),
    /// As many rows as an expression says, on if true.
    Count(FragmentId, bool),
    /// All rows, on if true.
    All(bool),
    /// To the row of that number, counted from the end if negative.
    Absolute(i64),
    /// To the row whose number an expression says.
    AbsoluteOf(FragmentId),
    /// To the row at the distance that an expression says.
    RelativeOf(FragmentId),
}

/// The names that a block declares.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// The block around it.
    pub parent: Option<usize>,
    /// The label of the block.
    pub label: Option<SmolStr>,
    /// Its variables.
    pub names: Vec<(SmolStr, usize)>,
}

/// A variable, or a field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignmentTarget {
    /// The variable.
    pub variable: usize,
    /// The field.
    pub field: Option<SmolStr>,
}

/// A subscript of what an assignment sets.
#[derive(Clone, Debug)]
pub enum BlockSubscript {
    /// Of an element.
    Index(FragmentId),
    /// The bounds of a slice.
    Slice(Option<FragmentId>, Option<FragmentId>),
}

/// A step from a variable to the part of it that an assignment sets.
#[derive(Clone, Debug)]
pub enum BlockStep {
    /// A field of a row.
    Field(SmolStr),
    /// Subscripts of an array or a JSONB value.
    Subscripts(Vec<BlockSubscript>),
}

/// INTO.
#[derive(Clone, Debug)]
pub struct IntoTargets {
    /// Where the values go.
    pub targets: Vec<AssignmentTarget>,
    /// STRICT.
    pub strict: bool,
}

/// A condition of EXCEPTION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExceptionCondition {
    /// OTHERS.
    Others,
    /// A SQLSTATE, or the class of one that ends in 000.
    Code(String),
}

/// WHEN … THEN in EXCEPTION.
#[derive(Clone, Debug)]
pub struct ExceptionHandler {
    /// The conditions.
    pub conditions: Vec<ExceptionCondition>,
    /// What is done.
    pub body: Vec<BlockStatement>,
}

/// A block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Its label.
    pub label: Option<SmolStr>,
    /// Its variables, in the order of their declarations.
    pub variables: Vec<usize>,
    /// Its statements.
    pub body: Vec<BlockStatement>,
    /// The variable `sqlstate` of the handlers; `sqlerrm` is the next one.
    pub error: usize,
    /// Its handlers.
    pub handlers: Vec<ExceptionHandler>,
}

/// What a loop goes over.
#[derive(Clone, Debug)]
pub enum LoopKind {
    /// LOOP.
    Forever,
    /// WHILE.
    While(FragmentId),
    /// FOR over integers: the variable, the bounds, the step, REVERSE.
    Integers(usize, FragmentId, FragmentId, Option<FragmentId>, bool),
    /// FOR over rows of a query.
    Rows(Vec<AssignmentTarget>, BodyQuery),
    /// FOR over a declared cursor: the record, the cursor and its arguments.
    Cursor(usize, usize, Vec<(usize, FragmentId)>),
    /// FOREACH over the elements of an array, or over slices of a number of dimensions.
    Elements(AssignmentTarget, usize, FragmentId),
}

/// A query that a statement runs.
#[derive(Clone, Debug)]
pub enum BodyQuery {
    /// Its text stands in the body.
    Static(FragmentId),
    /// EXECUTE: the expression of the text, and the values of USING.
    Dynamic(FragmentId, Vec<FragmentId>),
}

/// What GET DIAGNOSTICS returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiagnosticsItem {
    /// `ROW_COUNT`
    RowCount,
    /// `PG_CONTEXT`
    Context,
    /// `RETURNED_SQLSTATE`
    SqlState,
    /// `MESSAGE_TEXT`
    Message,
    /// `PG_EXCEPTION_DETAIL`
    Detail,
    /// `PG_EXCEPTION_HINT`
    Hint,
    /// `CONSTRAINT_NAME`
    Constraint,
    /// `PG_EXCEPTION_CONTEXT`
    ExceptionContext,
    /// `COLUMN_NAME`
    Column,
    /// `TABLE_NAME`
    Table,
    /// `SCHEMA_NAME`
    Schema,
    /// `PG_DATATYPE_NAME`
    DataType,
}

/// RAISE.
#[derive(Clone, Debug)]
pub struct Raise {
    /// The level in lower case.
    pub level: SmolStr,
    /// The SQLSTATE that is named instead of a message.
    pub code: Option<String>,
    /// The name by which the SQLSTATE was named.
    pub name: Option<SmolStr>,
    /// The message.
    pub message: Option<String>,
    /// What stands for its percent signs.
    pub arguments: Vec<FragmentId>,
    /// USING: the option in lower case, and its value.
    pub options: Vec<(SmolStr, FragmentId)>,
}

/// A statement of a body, with its line.
#[derive(Clone, Debug)]
pub struct BlockStatement {
    /// The line, counted from 1.
    pub line: usize,
    /// What it does.
    pub action: BlockAction,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum BlockAction {
    /// NULL.
    Nothing,
    /// A block within the block.
    Block(Box<Block>),
    /// An assignment.
    Assign(AssignmentTarget, FragmentId),
    /// An assignment to a part of a variable.
    AssignPart(usize, Vec<BlockStep>, FragmentId),
    /// IF or CASE: conditions with statements, the statements of ELSE; true: CASE without ELSE.
    If(Vec<(FragmentId, Vec<BlockStatement>)>, Vec<BlockStatement>, bool),
    /// A loop with its label.
    Loop(Option<SmolStr>, LoopKind, Vec<BlockStatement>),
    /// EXIT, or if true CONTINUE: the label and the condition.
    Leave(Option<SmolStr>, Option<FragmentId>, bool),
    /// RETURN of nothing.
    Return,
    /// RETURN of a value.
    ReturnValue(FragmentId),
    /// RETURN, or if true RETURN NEXT, of a record.
    ReturnRecord(usize, bool),
    /// RETURN NEXT of a value, or of the OUT arguments.
    ReturnNext(Option<FragmentId>),
    /// RETURN QUERY.
    ReturnQuery(BodyQuery),
    /// RAISE.
    Raise(Box<Raise>),
    /// ASSERT: the condition and the message.
    Assert(FragmentId, Option<FragmentId>),
    /// A statement whose rows are dropped if it is PERFORM.
    Run(BodyQuery, Option<IntoTargets>, bool),
    /// CALL: the procedure, the values of its arguments as a row, and the arguments.
    Call(Vec<SmolStr>, Option<FragmentId>, Vec<CallArgument>),
    /// OPEN of the cursor that a variable names.
    Open(usize, CursorSource),
    /// FETCH into variables, or MOVE.
    Fetch(usize, CursorMove, Option<Vec<AssignmentTarget>>),
    /// CLOSE.
    Close(usize),
    /// GET DIAGNOSTICS; true: STACKED.
    Diagnostics(Vec<(AssignmentTarget, DiagnosticsItem)>, bool),
    /// COMMIT, or if `commits` is false ROLLBACK.
    EndTransaction {
        /// Whether it is COMMIT.
        commits: bool,
        /// AND CHAIN: the next transaction has the settings of this one.
        chains: bool,
    },
}

/// An argument of CALL.
#[derive(Clone, Debug, PartialEq)]
pub struct CallArgument {
    /// Its name, if it is written.
    pub name: Option<SmolStr>,
    /// The variable that it is, if it is one.
    pub target: Option<AssignmentTarget>,
}

/// A body.
#[derive(Clone, Debug)]
pub struct BlockBody {
    /// The outermost block.
    pub block: Block,
    /// All variables.
    pub variables: Vec<BlockVariable>,
    /// All namespaces.
    pub namespaces: Vec<Namespace>,
    /// All texts.
    pub fragments: Vec<Fragment>,
    /// The variable `found`.
    pub found: usize,
    /// What a name means that a variable and a column have.
    pub conflict: VariableConflict,
}

/// What a name means that a variable and a column have: `#variable_conflict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VariableConflict {
    /// Nothing: it is an error.
    #[default]
    Error,
    /// The variable.
    Variable,
    /// The column.
    Column,
}

impl BlockBody {
    /// Finds the variable that a name means in a namespace, and the rest of the name.
    pub fn lookup<'n>(
        namespaces: &[Namespace],
        namespace: usize,
        names: &'n [SmolStr],
    ) -> Option<(usize, &'n [SmolStr])> {
        let (first, rest) = names.split_first()?;
        let mut at = Some(namespace);
        while let Some(here) = at.and_then(|at| namespaces.get(at)) {
            let own = |name: &SmolStr| {
                here.names.iter().rev().find(|(known, _)| known == name).map(|it| it.1)
            };
            if let Some(variable) = own(first) {
                return Some((variable, rest));
            }
            if here.label.as_ref() == Some(first)
                && let Some((second, rest)) = rest.split_first()
                && let Some(variable) = own(second)
            {
                return Some((variable, rest));
            }
            at = here.parent;
        }
        None
    }
}
