//! Cursors: their declarations, OPEN, FETCH, MOVE, CLOSE and FOR over a cursor.

use smol_str::SmolStr;

use super::BlockParser;
use super::lexer::LexemeKind;
use super::tree::{
    BlockAction, CursorDeclaration, CursorMove, CursorSource, FragmentId, LoopKind, RecordFields,
    VariableKind,
};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

fn wrong(message: String, position: usize) -> SqlError {
    SqlError::new(SqlState::SyntaxError, message).at(position)
}

impl BlockParser<'_> {
    /// Reads SCROLL or NO SCROLL.
    fn scroll(&mut self) -> Result<Option<bool>> {
        if self.takes("no") {
            self.expect("scroll")?;
            return Ok(Some(false));
        }
        Ok(self.takes("scroll").then_some(true))
    }

    /// Reads a declaration after its name, if it is one of a cursor.
    pub(super) fn cursor_declaration(&mut self, name: &SmolStr) -> Result<bool> {
        let start = self.at;
        let scroll = self.scroll()?;
        if !self.takes("cursor") {
            self.at = start;
            return Ok(false);
        }
        self.refuse_duplicate(name)?;
        let text = VariableKind::Scalar(DataType::Text);
        let variable = self.declare(Some(name.clone()), text);
        let around = self.enter(None);
        let mut arguments = Vec::new();
        if self.takes_symbol("(") {
            loop {
                let argument = self.name()?;
                let kind = self.kind(&[",", ")"])?;
                arguments.push(self.declare(Some(argument), kind));
                if !self.takes_symbol(",") {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        if !self.takes("for") {
            self.expect("is")?;
        }
        let text = self.text_to(&[";"])?;
        let query = self.fragment(text);
        self.namespace = around;
        self.expect_symbol(";")?;
        if let Some(declared) = self.body.variables.get_mut(variable) {
            declared.cursor = Some(CursorDeclaration { arguments, query, scroll });
        }
        Ok(true)
    }

    /// Returns the cursor that a variable is declared as.
    fn declared_cursor(&self, variable: usize) -> Option<&CursorDeclaration> {
        self.body.variables.get(variable)?.cursor.as_ref()
    }

    /// Reads the variable of a cursor.
    fn cursor_variable(&mut self) -> Result<usize> {
        let position = self.offset();
        let names = if self.takes_symbol("$") {
            let token = self.token(self.at);
            let digits = self.text.get(token.start..token.end).unwrap_or_default();
            let number = vec![smol_str::format_smolstr!("${digits}")];
            self.at += 1;
            number
        } else {
            self.names()?
        };
        let found = super::BlockBody::lookup(&self.body.namespaces, self.namespace, &names);
        let Some((variable, [])) = found else {
            return Err(BlockParser::unknown_variable(&names, position));
        };
        match self.body.variables.get(variable).map(|it| &it.kind) {
            Some(
                VariableKind::Scalar(data_type)
                | VariableKind::Domain(data_type, _)
                | VariableKind::Collated(data_type, _),
            ) if data_type.is_text() => Ok(variable),
            _ => {
                let name = names.join(".");
                let message = format!("variable \"{name}\" must be of type cursor or refcursor");
                Err(SqlError::new(SqlState::DatatypeMismatch, message).at(position))
            }
        }
    }

    /// Reads the arguments of a bound cursor: each with the variable that it gives a value.
    fn cursor_arguments(&mut self, variable: usize) -> Result<Vec<(usize, FragmentId)>> {
        let name = self.body.variables[variable].name.clone();
        let declared = self.declared_cursor(variable).map(|it| it.arguments.clone());
        let declared = declared.unwrap_or_default();
        let has_list = self.is_symbol("(");
        if declared.is_empty() == has_list {
            let what = if has_list { "has no arguments" } else { "has arguments" };
            return Err(wrong(format!("cursor \"{name}\" {what}"), self.offset()));
        }
        let mut given: Vec<(usize, FragmentId)> = Vec::new();
        if !self.takes_symbol("(") {
            return Ok(given);
        }
        loop {
            let position = self.offset();
            let is_named = self.token(self.at + 1).kind == LexemeKind::Symbol(":=")
                || self.token(self.at + 1).kind == LexemeKind::Symbol("=")
                    && self.token(self.at + 2).kind == LexemeKind::Symbol(">");
            let target = if is_named {
                let argument = self.name()?;
                self.at += if self.is_symbol(":=") { 1 } else { 2 };
                let known = declared.iter().copied();
                let mut known = known.filter(|it| self.body.variables[*it].name == argument);
                known.next().ok_or_else(|| {
                    let message = format!("cursor \"{name}\" has no argument named \"{argument}\"");
                    wrong(message, position)
                })?
            } else {
                let next = declared.get(given.len()).copied();
                let many = || format!("too many arguments for cursor \"{name}\"");
                next.ok_or_else(|| wrong(many(), position))?
            };
            if given.iter().any(|(known, _)| *known == target) {
                let argument = &self.body.variables[target].name;
                let message = format!(
                    "value for parameter \"{argument}\" of cursor \"{name}\" specified more than once"
                );
                return Err(wrong(message, position));
            }
            given.push((target, self.expression(&[",", ")"])?));
            if !self.takes_symbol(",") {
                break;
            }
        }
        if given.len() < declared.len() {
            let message = format!("not enough arguments for cursor \"{name}\"");
            return Err(wrong(message, self.offset()));
        }
        self.expect_symbol(")")?;
        Ok(given)
    }

    /// Reads OPEN after that word.
    pub(super) fn open(&mut self) -> Result<BlockAction> {
        let variable = self.cursor_variable()?;
        if self.declared_cursor(variable).is_some() {
            let arguments = self.cursor_arguments(variable)?;
            self.expect_symbol(";")?;
            return Ok(BlockAction::Open(variable, CursorSource::Bound(arguments)));
        }
        let scroll = self.scroll()?;
        self.expect("for")?;
        let query = self.body_query(";")?;
        self.expect_symbol(";")?;
        Ok(BlockAction::Open(variable, CursorSource::Query(query, scroll)))
    }

    /// Reads the direction of FETCH or MOVE, and whether it may pass several rows.
    fn cursor_move(&mut self) -> Result<(CursorMove, bool)> {
        let ends = ["from", "in"];
        let simple = [
            ("next", CursorMove::By(1)),
            ("prior", CursorMove::By(-1)),
            ("first", CursorMove::Absolute(1)),
            ("last", CursorMove::Absolute(-1)),
        ];
        for (word, direction) in simple {
            if self.takes(word) {
                return Ok((direction, false));
            }
        }
        if self.takes("absolute") {
            return Ok((CursorMove::AbsoluteOf(self.expression(&ends)?), false));
        }
        if self.takes("relative") {
            return Ok((CursorMove::RelativeOf(self.expression(&ends)?), false));
        }
        if self.takes("all") {
            return Ok((CursorMove::All(true), true));
        }
        for (word, is_forward) in [("forward", true), ("backward", false)] {
            if !self.takes(word) {
                continue;
            }
            if self.takes("all") {
                return Ok((CursorMove::All(is_forward), true));
            }
            let step = if is_forward { 1 } else { -1 };
            let has_count = !ends.iter().any(|end| self.is_word(end))
                && self.token(self.at + 1).kind != LexemeKind::Symbol(";")
                && !self.is_word_at(self.at + 1, "into");
            return Ok(match has_count {
                true => (CursorMove::Count(self.expression(&ends)?, is_forward), true),
                false => (CursorMove::By(step), false),
            });
        }
        // A count, if FROM or IN follows it before the end.
        let counts = self.find_end(&["from", "in", ";", "into"]).ok();
        if counts.is_some_and(|at| {
            at > self.at && (self.is_word_at(at, "from") || self.is_word_at(at, "in"))
        }) {
            return Ok((CursorMove::Count(self.expression(&ends)?, true), true));
        }
        Ok((CursorMove::By(1), false))
    }

    /// Reads FETCH or MOVE after that word.
    pub(super) fn fetch(&mut self, is_fetch: bool) -> Result<BlockAction> {
        let position = self.offset();
        let (direction, is_many) = self.cursor_move()?;
        if is_fetch && is_many {
            let message = "FETCH statement cannot return multiple rows";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message).at(position));
        }
        if !self.takes("from") {
            self.takes("in");
        }
        let variable = self.cursor_variable()?;
        let mut into = None;
        if is_fetch {
            self.expect("into")?;
            into = Some(self.targets()?);
        }
        self.expect_symbol(";")?;
        Ok(BlockAction::Fetch(variable, direction, into))
    }

    /// Reads CLOSE after that word.
    pub(super) fn close(&mut self) -> Result<BlockAction> {
        let variable = self.cursor_variable()?;
        self.expect_symbol(";")?;
        Ok(BlockAction::Close(variable))
    }

    /// Reads the rest of FOR … IN, if it goes over a declared cursor.
    pub(super) fn for_cursor(
        &mut self,
        label: Option<&SmolStr>,
        names: &[SmolStr],
    ) -> Result<Option<BlockAction>> {
        let (LexemeKind::Word(cursor) | LexemeKind::Quoted(cursor)) = self.peek() else {
            return Ok(None);
        };
        let cursor = [cursor.clone()];
        let found = super::BlockBody::lookup(&self.body.namespaces, self.namespace, &cursor);
        let Some((variable, [])) = found else { return Ok(None) };
        let [name] = names else { return Ok(None) };
        if self.declared_cursor(variable).is_none() {
            return Ok(None);
        }
        self.at += 1;
        let arguments = self.cursor_arguments(variable)?;
        self.expect("loop")?;
        let around = self.enter(label.cloned());
        let record =
            self.declare(Some(name.clone()), VariableKind::Record(RecordFields::default()));
        let body = self.loop_body(label)?;
        self.namespace = around;
        let kind = LoopKind::Cursor(record, variable, arguments);
        Ok(Some(BlockAction::Loop(label.cloned(), kind, body)))
    }
}
