//! PL/pgSQL: from the text of a body to its tree.
//!
//! The statements and expressions inside stay texts. They are bound when they are executed for the
//! first time, with the variables that their namespace shows.

mod checks;
mod conditions;
mod cursors;
mod lexer;
mod raise;
mod records;
mod statements;
mod tree;

use smol_str::SmolStr;

use self::lexer::{Lexeme, LexemeKind, lexemes};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

pub use checks::check_statements;
pub use conditions::condition_codes;
pub use records::with_fields;
pub use tree::{
    AssignmentTarget, Block, BlockAction, BlockBody, BlockStatement, BlockStep, BlockSubscript,
    BlockVariable, BodyQuery, CallArgument, CursorMove, CursorSource, DiagnosticsItem,
    ExceptionCondition, ExceptionHandler, Fragment, FragmentId, IntoTargets, LoopKind, Namespace,
    Raise, RecordFields, VariableConflict, VariableKind,
};

/// Levels of blocks and loops within each other.
const DEPTH: usize = 100;

/// A variable that a body has before its first declaration.
#[derive(Clone, Debug)]
pub struct GivenVariable {
    /// Its names.
    pub names: Vec<SmolStr>,
    /// What it holds.
    pub kind: VariableKind,
}

/// Finds what the text of a type means.
pub type TypeLookup<'l> = dyn Fn(&str) -> Result<VariableKind> + 'l;

/// Parses a body. `name` is the label of the given variables, and `types` looks types up.
///
/// # Errors
/// A syntax error, or the error of a type.
pub fn parse(
    text: &str,
    name: &str,
    given: Vec<GivenVariable>,
    types: &TypeLookup<'_>,
) -> Result<BlockBody> {
    let mut parser = BlockParser {
        text,
        tokens: lexemes(text)?,
        at: 0,
        depth: 0,
        types,
        enclosing: vec![EnclosingPart { label: Some(name.into()), is_loop: false }],
        namespace: 0,
        declared_line: 0,
        body: BlockBody {
            block: Block::default(),
            variables: Vec::new(),
            namespaces: vec![Namespace { label: Some(name.into()), ..Namespace::default() }],
            fragments: Vec::new(),
            found: 0,
            conflict: VariableConflict::default(),
        },
    };
    for variable in given {
        let GivenVariable { names, kind } = variable;
        let name = names.first().cloned().unwrap_or_default();
        let number = parser.declare(None, kind);
        if let Some(it) = parser.body.variables.get_mut(number) {
            it.name = name;
        }
        let known = names.into_iter().map(|name| (name, number));
        parser.body.namespaces[0].names.extend(known);
    }
    let boolean = VariableKind::Scalar(DataType::Boolean);
    parser.body.found = parser.declare(Some("found".into()), boolean);
    parser.options()?;
    let label = parser.label()?;
    parser.body.block = parser.block(label)?;
    parser.takes_symbol(";");
    if parser.peek() != &LexemeKind::End {
        return Err(parser.error());
    }
    Ok(parser.body)
}

/// A block or loop that EXIT may leave.
struct EnclosingPart {
    label: Option<SmolStr>,
    is_loop: bool,
}

/// A position in the tokens of a body.
struct BlockParser<'p> {
    text: &'p str,
    tokens: Vec<Lexeme>,
    at: usize,
    depth: usize,
    types: &'p TypeLookup<'p>,
    /// The blocks and loops around what is parsed.
    enclosing: Vec<EnclosingPart>,
    /// The namespace of the block that is parsed.
    namespace: usize,
    /// The line of the last declaration.
    declared_line: usize,
    body: BlockBody,
}

impl BlockParser<'_> {
    fn token(&self, at: usize) -> &Lexeme {
        let last = self.tokens.len() - 1;
        &self.tokens[at.min(last)]
    }

    fn peek(&self) -> &LexemeKind {
        &self.token(self.at).kind
    }

    fn offset(&self) -> usize {
        self.token(self.at).start
    }

    fn line(&self) -> usize {
        let before = self.text.get(..self.offset()).unwrap_or_default();
        before.matches('\n').count() + 1
    }

    fn error(&self) -> SqlError {
        let token = self.token(self.at);
        let found = match token.kind {
            LexemeKind::End => "at end of input".to_owned(),
            _ => format!("at or near \"{}\"", &self.text[token.start..token.end]),
        };
        SqlError::new(SqlState::SyntaxError, format!("syntax error {found}")).at(token.start)
    }

    fn is_word_at(&self, at: usize, word: &str) -> bool {
        matches!(&self.token(at).kind, LexemeKind::Word(found) if found == word)
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(self.at, word)
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), LexemeKind::Symbol(found) if *found == symbol)
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn takes_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.takes(word) { Ok(()) } else { Err(self.error()) }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.takes_symbol(symbol) { Ok(()) } else { Err(self.error()) }
    }

    fn name(&mut self) -> Result<SmolStr> {
        let (LexemeKind::Word(name) | LexemeKind::Quoted(name)) = self.peek() else {
            return Err(self.error());
        };
        let name = name.clone();
        self.at += 1;
        Ok(name)
    }

    /// Reads a name, or the number of an argument such as `$1`.
    fn name_or_number(&mut self) -> Result<SmolStr> {
        if !self.takes_symbol("$") {
            return self.name();
        }
        let token = self.token(self.at);
        if token.kind != LexemeKind::Number {
            return Err(self.error());
        }
        let number = smol_str::format_smolstr!("${}", &self.text[token.start..token.end]);
        self.at += 1;
        Ok(number)
    }

    /// Reads names with dots between them.
    fn names(&mut self) -> Result<Vec<SmolStr>> {
        let mut names = vec![self.name_or_number()?];
        while self.takes_symbol(".") {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// Parses the options before the outermost block.
    fn options(&mut self) -> Result<()> {
        while self.takes_symbol("#") {
            if self.takes("variable_conflict") {
                self.body.conflict = match self.name()?.as_str() {
                    "error" => VariableConflict::Error,
                    "use_variable" => VariableConflict::Variable,
                    "use_column" => VariableConflict::Column,
                    _ => return Err(self.error_before()),
                };
            } else if self.takes("print_strict_params") {
                // Quickbeam shows no parameters in errors.
                if !matches!(self.name()?.as_str(), "on" | "off") {
                    return Err(self.error_before());
                }
            } else {
                return Err(self.error());
            }
        }
        Ok(())
    }

    /// Returns the syntax error at the token that was taken last.
    fn error_before(&mut self) -> SqlError {
        self.at = self.at.saturating_sub(1);
        self.error()
    }

    /// Reads `<<label>>`, if there is one.
    fn label(&mut self) -> Result<Option<SmolStr>> {
        if !self.takes_symbol("<<") {
            return Ok(None);
        }
        let label = self.name()?;
        self.expect_symbol(">>")?;
        Ok(Some(label))
    }

    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        let result = if self.depth > DEPTH {
            let message = "the blocks of a function are nested too deep";
            Err(SqlError::new(SqlState::StatementTooComplex, message).at(self.offset()))
        } else {
            step(self)
        };
        self.depth -= 1;
        result
    }

    /// Makes a variable that may be assigned anything of its kind, with a name in the namespace of
    /// the block.
    fn declare(&mut self, name: Option<SmolStr>, kind: VariableKind) -> usize {
        let number = self.body.variables.len();
        let own = name.clone().unwrap_or_default();
        let (not_null, constant, initial) = (false, false, None);
        let cursor = None;
        let line = self.declared_line;
        let made = BlockVariable { name: own, kind, not_null, constant, initial, cursor, line };
        self.body.variables.push(made);
        if let (Some(name), Some(space)) = (name, self.body.namespaces.get_mut(self.namespace)) {
            space.names.push((name, number));
        }
        number
    }

    /// Begins a namespace within the one of the block around it.
    fn enter(&mut self, label: Option<SmolStr>) -> usize {
        let around = self.namespace;
        self.body.namespaces.push(Namespace { parent: Some(around), label, names: Vec::new() });
        self.namespace = self.body.namespaces.len() - 1;
        around
    }

    /// Keeps a text for the parser of statements.
    fn fragment(&mut self, text: String) -> FragmentId {
        let namespace = self.namespace;
        self.body.fragments.push(Fragment { text: text.into(), namespace });
        self.body.fragments.len() - 1
    }

    /// Returns the number of the token at this level that ends the text from here: one of these
    /// words or symbols.
    fn find_end(&self, ends: &[&str]) -> Result<usize> {
        let (mut at, mut depth, mut cases) = (self.at, 0_usize, 0_usize);
        loop {
            let token = self.token(at);
            match &token.kind {
                LexemeKind::End => return Err(BlockParser::end_error(token.start)),
                LexemeKind::Symbol("(" | "[") => depth += 1,
                LexemeKind::Symbol(")" | "]") if depth > 0 => depth -= 1,
                LexemeKind::Word(word) if word == "case" && depth == 0 => cases += 1,
                LexemeKind::Word(word) if word == "end" && depth == 0 && cases > 0 => cases -= 1,
                LexemeKind::Word(word) if depth == 0 && cases == 0 && ends.contains(&&word[..]) => {
                    return Ok(at);
                }
                LexemeKind::Symbol(symbol) if depth == 0 && ends.contains(symbol) => return Ok(at),
                LexemeKind::Symbol(";") => {
                    let message = "syntax error at or near \";\"";
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(token.start));
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn end_error(position: usize) -> SqlError {
        SqlError::new(SqlState::SyntaxError, "syntax error at end of input").at(position)
    }

    /// Reads the text up to one of these words or symbols, which is not taken.
    fn text_to(&mut self, ends: &[&str]) -> Result<String> {
        let end = self.find_end(ends)?;
        if end == self.at {
            return Err(self.error());
        }
        // Without a comment at the end, which would take what is written after the text.
        let text = self.text[self.offset()..self.token(end - 1).end].to_owned();
        self.at = end;
        Ok(text)
    }

    /// Reads an expression up to one of these words or symbols, which is not taken.
    fn expression(&mut self, ends: &[&str]) -> Result<FragmentId> {
        let text = self.text_to(ends)?;
        Ok(self.fragment(format!("SELECT {text}")))
    }

    /// Reads the type of a declaration.
    fn kind(&mut self, ends: &[&str]) -> Result<VariableKind> {
        let position = self.offset();
        let text = self.text_to(ends)?;
        // The type of another variable.
        if let Some(of) = text.to_lowercase().strip_suffix("%type") {
            let names: Vec<SmolStr> = of.trim().split('.').map(SmolStr::new).collect();
            let found = BlockBody::lookup(&self.body.namespaces, self.namespace, &names);
            if let Some((variable, [])) = found {
                return Ok(self.body.variables[variable].kind.clone());
            }
        }
        (self.types)(&text).map_err(|error| error.at(position))
    }

    /// Reads DECLARE, if it stands here, and a block up to END.
    fn block(&mut self, label: Option<SmolStr>) -> Result<Block> {
        let around = self.enter(label.clone());
        self.enclosing.push(EnclosingPart { label: label.clone(), is_loop: false });
        let first = self.body.variables.len();
        if self.takes("declare") {
            while !self.is_word("begin") {
                if !self.takes("declare") {
                    self.declaration()?;
                }
            }
        }
        let variables = (first..self.body.variables.len()).collect();
        self.expect("begin")?;
        let body = self.statements(&["end", "exception"])?;
        let (mut handlers, error) = (Vec::new(), self.body.variables.len());
        if self.takes("exception") {
            self.enter(None);
            for name in ["sqlstate", "sqlerrm"] {
                let text = VariableKind::Scalar(DataType::Text);
                self.declare(Some(name.into()), text);
            }
            while self.takes("when") {
                handlers.push(self.handler()?);
            }
            if handlers.is_empty() {
                return Err(self.error());
            }
        }
        self.expect("end")?;
        self.end_label(label.as_ref())?;
        self.enclosing.pop();
        self.namespace = around;
        Ok(Block { label, variables, body, error, handlers })
    }

    /// Reads the label after END, which has to be that of the block or loop.
    fn end_label(&mut self, label: Option<&SmolStr>) -> Result<()> {
        if !matches!(self.peek(), LexemeKind::Word(_) | LexemeKind::Quoted(_)) {
            return Ok(());
        }
        let position = self.offset();
        let end = self.name()?;
        let message = match label {
            Some(label) if *label == end => return Ok(()),
            Some(label) => {
                format!("end label \"{end}\" differs from block's label \"{label}\"")
            }
            None => format!("end label \"{end}\" specified for unlabeled block"),
        };
        Err(SqlError::new(SqlState::SyntaxError, message).at(position))
    }

    fn declaration(&mut self) -> Result<()> {
        self.declared_line = self.line();
        let name = self.name()?;
        if self.is_word("alias") {
            self.at += 1;
            self.expect("for")?;
            let number = self.names()?;
            let found = BlockBody::lookup(&self.body.namespaces, self.namespace, &number);
            let Some((variable, [])) = found else { return Err(self.error()) };
            self.body.namespaces[self.namespace].names.push((name, variable));
            return self.expect_symbol(";");
        }
        if self.cursor_declaration(&name)? {
            return Ok(());
        }
        let constant = self.takes("constant");
        let kind = self.kind(&["not", "default", ":=", "=", ";", "collate"])?;
        if self.takes("collate") {
            self.names()?;
        }
        let not_null = self.takes("not");
        if not_null {
            self.expect("null")?;
        }
        let has_value = self.takes("default") || self.takes_symbol(":=") || self.takes_symbol("=");
        let initial = if has_value { Some(self.expression(&[";"])?) } else { None };
        if not_null && initial.is_none() {
            let message = format!(
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            );
            return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
        }
        self.refuse_duplicate(&name)?;
        let number = self.declare(Some(name), kind);
        if let Some(made) = self.body.variables.get_mut(number) {
            (made.constant, made.not_null, made.initial) = (constant, not_null, initial);
        }
        self.expect_symbol(";")
    }

    /// Refuses a name that the block has declared already.
    fn refuse_duplicate(&self, name: &str) -> Result<()> {
        let space = &self.body.namespaces[self.namespace];
        if !space.names.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        let message = format!("duplicate declaration at or near \"{name}\"");
        Err(SqlError::new(SqlState::SyntaxError, message).at(self.offset()))
    }

    fn handler(&mut self) -> Result<ExceptionHandler> {
        let mut conditions = Vec::new();
        loop {
            let position = self.offset();
            let name = self.name()?;
            if name == "others" {
                conditions.push(ExceptionCondition::Others);
            } else if name == "sqlstate" {
                let LexemeKind::Text(code) = self.peek() else { return Err(self.error()) };
                let code = code.clone();
                self.at += 1;
                conditions.push(ExceptionCondition::Code(code));
            } else {
                let known = conditions.len();
                let codes = condition_codes(&name);
                conditions.extend(codes.map(|it| ExceptionCondition::Code(it.to_owned())));
                if conditions.len() == known {
                    let message = format!("unrecognized exception condition \"{name}\"");
                    return Err(SqlError::new(SqlState::UndefinedObject, message).at(position));
                }
            }
            if !self.takes("or") {
                break;
            }
        }
        self.expect("then")?;
        Ok(ExceptionHandler { conditions, body: self.statements(&["when", "end"])? })
    }

    /// Reads a variable, or a field of one.
    fn target(&mut self) -> Result<AssignmentTarget> {
        let position = self.offset();
        let names = self.names()?;
        let found = BlockBody::lookup(&self.body.namespaces, self.namespace, &names);
        match found {
            Some((variable, [])) => Ok(AssignmentTarget { variable, field: None }),
            Some((variable, [field])) => {
                Ok(AssignmentTarget { variable, field: Some(field.clone()) })
            }
            _ => Err(BlockParser::unknown_variable(&names, position)),
        }
    }

    #[cold]
    fn unknown_variable(names: &[SmolStr], position: usize) -> SqlError {
        let name = names.join(".");
        let message = format!("\"{name}\" is not a known variable");
        SqlError::new(SqlState::SyntaxError, message).at(position)
    }

    /// Reads variables with commas between them.
    fn targets(&mut self) -> Result<Vec<AssignmentTarget>> {
        let mut targets = vec![self.target()?];
        while self.takes_symbol(",") {
            targets.push(self.target()?);
        }
        Ok(targets)
    }
}
