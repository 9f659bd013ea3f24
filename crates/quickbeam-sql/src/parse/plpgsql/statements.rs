//! The statements of a block.

use smol_str::SmolStr;

use super::lexer::LexemeKind;
use super::tree::{
    AssignmentTarget, BlockAction, BlockBody, BlockStatement, BlockStep, BlockSubscript, BodyQuery,
    CallArgument, DiagnosticsItem, FragmentId, IntoTargets, LoopKind, VariableKind,
};
use super::{BlockParser, EnclosingPart};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

impl BlockParser<'_> {
    /// Reads statements up to one of these words, which is not taken.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<Vec<BlockStatement>> {
        let mut statements = Vec::new();
        while !ends.iter().any(|end| self.is_word(end)) {
            let line = self.line();
            let action = self.deeper(BlockParser::statement)?;
            statements.push(BlockStatement { line, action });
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<BlockAction> {
        let label = self.label()?;
        let LexemeKind::Word(word) = self.peek() else {
            return if matches!(self.peek(), LexemeKind::Quoted(_) | LexemeKind::Symbol("$")) {
                self.assignment()
            } else {
                Err(self.error())
            };
        };
        let word = word.clone();
        if self.is_assignment() {
            return self.assignment();
        }
        match &word[..] {
            "declare" | "begin" => {
                let block = self.block(label)?;
                self.expect_symbol(";")?;
                return Ok(BlockAction::Block(Box::new(block)));
            }
            "insert" | "update" | "delete" | "select" | "with" | "merge" | "values" | "create"
            | "drop" | "alter" | "truncate" | "set" | "grant" | "revoke" | "comment" | "lock"
            | "notify" | "listen" | "unlisten" | "reset" | "analyze" | "vacuum" | "refresh"
            | "reindex" | "cluster" | "copy" | "do" | "prepare" | "deallocate" | "discard"
            | "explain" | "show" | "table" | "savepoint" | "release" | "start" | "abort"
            | "checkpoint" => {
                return self.sql();
            }
            _ => self.at += 1,
        }
        match &word[..] {
            "null" => self.expect_symbol(";").map(|()| BlockAction::Nothing),
            "if" => self.if_statement(),
            "case" => self.case_statement(),
            "loop" => {
                let body = self.loop_body(label.as_ref())?;
                Ok(BlockAction::Loop(label, LoopKind::Forever, body))
            }
            "while" => {
                let condition = self.expression(&["loop"])?;
                self.expect("loop")?;
                let body = self.loop_body(label.as_ref())?;
                Ok(BlockAction::Loop(label, LoopKind::While(condition), body))
            }
            "for" => self.for_statement(label),
            "foreach" => {
                let target = self.target()?;
                let slice = if self.takes("slice") { self.slice()? } else { 0 };
                self.expect("in")?;
                self.expect("array")?;
                let array = self.expression(&["loop"])?;
                self.expect("loop")?;
                let body = self.loop_body(label.as_ref())?;
                Ok(BlockAction::Loop(label, LoopKind::Elements(target, slice, array), body))
            }
            "exit" | "continue" => self.leave(word == "continue"),
            "return" => self.return_statement(),
            "raise" => self.raise(),
            "assert" => {
                let condition = self.expression(&[",", ";"])?;
                let message =
                    if self.takes_symbol(",") { Some(self.expression(&[";"])?) } else { None };
                self.expect_symbol(";").map(|()| BlockAction::Assert(condition, message))
            }
            "perform" => {
                let text = self.text_to(&[";"])?;
                let query = self.fragment(format!("SELECT {text}"));
                self.expect_symbol(";")
                    .map(|()| BlockAction::Run(BodyQuery::Static(query), None, true))
            }
            "execute" => self.execute(),
            "call" => self.call(),
            "get" => self.diagnostics(),
            "open" => self.open(),
            "fetch" | "move" => self.fetch(word == "fetch"),
            "close" => self.close(),
            "commit" | "rollback" => {
                let mut chains = false;
                if self.takes("and") {
                    chains = !self.takes("no");
                    self.expect("chain")?;
                }
                let commits = word == "commit";
                self.expect_symbol(";").map(|()| BlockAction::EndTransaction { commits, chains })
            }
            _ => {
                self.at -= 1;
                Err(self.error())
            }
        }
    }

    /// Whether a name, perhaps with subscripts, and `:=` or `=` stand here.
    fn is_assignment(&self) -> bool {
        let mut at = self.at + 1;
        loop {
            match self.token(at).kind {
                LexemeKind::Symbol(":=" | "=") => return true,
                LexemeKind::Symbol(".") => at += 2,
                LexemeKind::Symbol("[") => {
                    let mut depth = 0_usize;
                    loop {
                        match self.token(at).kind {
                            LexemeKind::Symbol("[") => depth += 1,
                            LexemeKind::Symbol("]") => depth -= 1,
                            LexemeKind::Symbol(";") | LexemeKind::End => return false,
                            _ => {}
                        }
                        at += 1;
                        if depth == 0 {
                            break;
                        }
                    }
                }
                _ => return false,
            }
        }
    }

    fn assignment(&mut self) -> Result<BlockAction> {
        let position = self.offset();
        let names = self.names()?;
        let found = BlockBody::lookup(&self.body.namespaces, self.namespace, &names);
        let Some((variable, fields)) = found else {
            return Err(BlockParser::unknown_variable(&names, position));
        };
        let mut steps: Vec<BlockStep> = fields.iter().cloned().map(BlockStep::Field).collect();
        loop {
            if self.is_symbol("[") {
                steps.push(BlockStep::Subscripts(self.subscripts()?));
            } else if self.takes_symbol(".") {
                steps.push(BlockStep::Field(self.name()?));
            } else {
                break;
            }
        }
        if !self.takes_symbol(":=") {
            self.expect_symbol("=")?;
        }
        let value = self.expression(&[";"])?;
        self.expect_symbol(";")?;
        let field = match &steps[..] {
            [] => None,
            [BlockStep::Field(field)] => Some(field.clone()),
            _ => return Ok(BlockAction::AssignPart(variable, steps, value)),
        };
        Ok(BlockAction::Assign(AssignmentTarget { variable, field }, value))
    }

    /// Reads the number of dimensions after SLICE.
    fn slice(&mut self) -> Result<usize> {
        let token = self.token(self.at);
        let digits = self.text.get(token.start..token.end).unwrap_or_default();
        let number = digits.parse().map_err(|_| self.error())?;
        self.at += 1;
        Ok(number)
    }

    fn subscripts(&mut self) -> Result<Vec<BlockSubscript>> {
        let mut subscripts = Vec::new();
        while self.takes_symbol("[") {
            let low = if self.is_symbol(":") { None } else { Some(self.expression(&[":", "]"])?) };
            if !self.takes_symbol(":") {
                subscripts.push(BlockSubscript::Index(low.ok_or_else(|| self.error())?));
            } else if self.is_symbol("]") {
                subscripts.push(BlockSubscript::Slice(low, None));
            } else {
                let high = self.expression(&["]"])?;
                subscripts.push(BlockSubscript::Slice(low, Some(high)));
            }
            self.expect_symbol("]")?;
        }
        Ok(subscripts)
    }

    fn if_statement(&mut self) -> Result<BlockAction> {
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        loop {
            let condition = self.expression(&["then"])?;
            self.expect("then")?;
            let body = self.statements(&["elsif", "elseif", "else", "end"])?;
            branches.push((condition, body));
            if !self.takes("elsif") && !self.takes("elseif") {
                break;
            }
        }
        if self.takes("else") {
            otherwise = self.statements(&["end"])?;
        }
        self.expect("end")?;
        self.expect("if")?;
        self.expect_symbol(";")?;
        Ok(BlockAction::If(branches, otherwise, false))
    }

    fn case_statement(&mut self) -> Result<BlockAction> {
        let search = if self.is_word("when") { None } else { Some(self.text_to(&["when"])?) };
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        while self.takes("when") {
            let condition = self.text_to(&["then"])?;
            let text = match &search {
                Some(search) => format!("SELECT ({search}) IN ({condition})"),
                None => format!("SELECT {condition}"),
            };
            let condition = self.fragment(text);
            self.expect("then")?;
            branches.push((condition, self.statements(&["when", "else", "end"])?));
        }
        let has_else = self.takes("else");
        if has_else {
            otherwise = self.statements(&["end"])?;
        }
        self.expect("end")?;
        self.expect("case")?;
        self.expect_symbol(";")?;
        Ok(BlockAction::If(branches, otherwise, !has_else))
    }

    /// Reads statements up to END LOOP.
    pub(super) fn loop_body(&mut self, label: Option<&SmolStr>) -> Result<Vec<BlockStatement>> {
        self.enclosing.push(EnclosingPart { label: label.cloned(), is_loop: true });
        let body = self.statements(&["end"])?;
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label)?;
        self.enclosing.pop();
        self.expect_symbol(";")?;
        Ok(body)
    }

    fn for_statement(&mut self, label: Option<SmolStr>) -> Result<BlockAction> {
        let start = self.at;
        let names = self.names()?;
        if self.takes("in") {
            if let Some(made) = self.for_cursor(label.as_ref(), &names)? {
                return Ok(made);
            }
            let reverse = self.takes("reverse");
            if let Ok(end) = self.find_end(&["..", "loop"])
                && self.token(end).kind == LexemeKind::Symbol("..")
            {
                return self.for_integers(label, names, reverse);
            }
        }
        self.at = start;
        let targets = self.targets()?;
        self.expect("in")?;
        let query = self.body_query("loop")?;
        self.expect("loop")?;
        let body = self.loop_body(label.as_ref())?;
        Ok(BlockAction::Loop(label, LoopKind::Rows(targets, query), body))
    }

    /// Reads a query up to that end, or EXECUTE with an expression for its text.
    pub(super) fn body_query(&mut self, end: &'static str) -> Result<BodyQuery> {
        if self.takes("execute") {
            let text = self.expression(&[end, "using"])?;
            return Ok(BodyQuery::Dynamic(text, self.using(&[end])?));
        }
        let text = self.text_to(&[end])?;
        Ok(BodyQuery::Static(self.fragment(text)))
    }

    fn for_integers(
        &mut self,
        label: Option<SmolStr>,
        names: Vec<SmolStr>,
        reverse: bool,
    ) -> Result<BlockAction> {
        let [name] = &names[..] else { return Err(self.error()) };
        let first = self.expression(&[".."])?;
        self.expect_symbol("..")?;
        let last = self.expression(&["loop", "by"])?;
        let step = if self.takes("by") { Some(self.expression(&["loop"])?) } else { None };
        self.expect("loop")?;
        let around = self.enter(label.clone());
        let integer = VariableKind::Scalar(DataType::Integer);
        let variable = self.declare(Some(name.clone()), integer);
        let body = self.loop_body(label.as_ref())?;
        self.namespace = around;
        let kind = LoopKind::Integers(variable, first, last, step, reverse);
        Ok(BlockAction::Loop(label, kind, body))
    }

    fn leave(&mut self, continues: bool) -> Result<BlockAction> {
        let position = self.token(self.at - 1).start;
        let is_label = match self.peek() {
            LexemeKind::Word(word) => word != "when",
            other => matches!(other, LexemeKind::Quoted(_)),
        };
        let label_position = self.offset();
        let label = if is_label { Some(self.name()?) } else { None };
        self.check_leave(label.as_ref(), continues)
            .map_err(|error| error.at(if is_label { label_position } else { position }))?;
        let condition = if self.takes("when") { Some(self.expression(&[";"])?) } else { None };
        self.expect_symbol(";")?;
        Ok(BlockAction::Leave(label, condition, continues))
    }

    /// Checks that there is something to leave or to continue.
    fn check_leave(&self, label: Option<&SmolStr>, continues: bool) -> Result<()> {
        let mut around = self.enclosing.iter().rev();
        let message = match label {
            None if around.any(|it| it.is_loop) => return Ok(()),
            None if continues => "CONTINUE cannot be used outside a loop".to_owned(),
            None => "EXIT cannot be used outside a loop, unless it has a label".to_owned(),
            Some(label) => match around.find(|it| it.label.as_ref() == Some(label)) {
                Some(found) if found.is_loop || !continues => return Ok(()),
                Some(_) => format!("block label \"{label}\" cannot be used in CONTINUE"),
                None => format!(
                    "there is no label \"{label}\" attached to any block or loop enclosing this statement"
                ),
            },
        };
        Err(SqlError::new(SqlState::SyntaxError, message))
    }

    /// The record that is all that stands before the semicolon.
    fn lone_record(&mut self) -> Option<usize> {
        let (LexemeKind::Word(name) | LexemeKind::Quoted(name)) = self.peek() else { return None };
        if self.token(self.at + 1).kind != LexemeKind::Symbol(";") {
            return None;
        }
        let names = [name.clone()];
        let (variable, _) = BlockBody::lookup(&self.body.namespaces, self.namespace, &names)?;
        matches!(self.body.variables[variable].kind, VariableKind::Record(_)).then(|| {
            self.at += 2;
            variable
        })
    }

    fn return_statement(&mut self) -> Result<BlockAction> {
        if self.takes_symbol(";") {
            return Ok(BlockAction::Return);
        }
        if self.takes("query") {
            let query = self.body_query(";")?;
            return self.expect_symbol(";").map(|()| BlockAction::ReturnQuery(query));
        }
        let is_next = self.takes("next");
        if is_next && self.takes_symbol(";") {
            return Ok(BlockAction::ReturnNext(None));
        }
        if let Some(record) = self.lone_record() {
            return Ok(BlockAction::ReturnRecord(record, is_next));
        }
        let value = self.expression(&[";"])?;
        self.expect_symbol(";")?;
        Ok(if is_next {
            BlockAction::ReturnNext(Some(value))
        } else {
            BlockAction::ReturnValue(value)
        })
    }

    /// Reads USING and its expressions, if it stands here.
    pub(super) fn using(&mut self, ends: &[&str]) -> Result<Vec<FragmentId>> {
        let mut values = Vec::new();
        if self.takes("using") {
            let ends: Vec<&str> = ends.iter().copied().chain([","]).collect();
            loop {
                values.push(self.expression(&ends)?);
                if !self.takes_symbol(",") {
                    break;
                }
            }
        }
        Ok(values)
    }

    fn into(&mut self) -> Result<IntoTargets> {
        let strict = self.takes("strict");
        Ok(IntoTargets { strict, targets: self.targets()? })
    }

    fn execute(&mut self) -> Result<BlockAction> {
        let text = self.expression(&[";", "into", "using"])?;
        let (mut into, mut using) = (None, Vec::new());
        loop {
            if self.is_word("using") {
                using = self.using(&[";", "into"])?;
            } else if self.takes("into") {
                into = Some(self.into()?);
            } else {
                break;
            }
        }
        self.expect_symbol(";")?;
        Ok(BlockAction::Run(BodyQuery::Dynamic(text, using), into, false))
    }

    fn call(&mut self) -> Result<BlockAction> {
        let names = self.names()?;
        self.expect_symbol("(")?;
        let (mut arguments, mut values) = (Vec::new(), Vec::new());
        while !self.is_symbol(")") {
            let name = self.argument_name()?;
            let before = self.at;
            let target = match self.peek() {
                LexemeKind::Word(_) | LexemeKind::Quoted(_) => self.target().ok(),
                _ => None,
            };
            let is_alone = self.is_symbol(",") || self.is_symbol(")");
            self.at = before;
            values.push(self.text_to(&[",", ")"])?);
            arguments.push(CallArgument { name, target: target.filter(|_| is_alone) });
            self.takes_symbol(",");
        }
        self.at += 1;
        let has_values = !values.is_empty();
        let values = has_values.then(|| self.fragment(format!("SELECT {}", values.join(", "))));
        self.expect_symbol(";")?;
        Ok(BlockAction::Call(names, values, arguments))
    }

    /// Reads the name of an argument with `=>` or `:=` after it, if one stands here.
    fn argument_name(&mut self) -> Result<Option<SmolStr>> {
        let is_symbol = |at, symbol| self.token(at).kind == LexemeKind::Symbol(symbol);
        let is_old = is_symbol(self.at + 1, ":=");
        let is_arrow = is_symbol(self.at + 1, "=") && is_symbol(self.at + 2, ">");
        if !is_old && !is_arrow {
            return Ok(None);
        }
        let name = self.name()?;
        self.at += if is_old { 1 } else { 2 };
        Ok(Some(name))
    }

    fn diagnostics(&mut self) -> Result<BlockAction> {
        let stacked = self.takes("stacked");
        self.takes("current");
        self.expect("diagnostics")?;
        let mut items: Vec<(AssignmentTarget, DiagnosticsItem)> = Vec::new();
        loop {
            let target = self.target()?;
            if !self.takes_symbol(":=") {
                self.expect_symbol("=")?;
            }
            let position = self.offset();
            let item = match &self.name()?[..] {
                "row_count" if !stacked => DiagnosticsItem::RowCount,
                "pg_context" if !stacked => DiagnosticsItem::Context,
                "returned_sqlstate" if stacked => DiagnosticsItem::SqlState,
                "message_text" if stacked => DiagnosticsItem::Message,
                "pg_exception_detail" if stacked => DiagnosticsItem::Detail,
                "pg_exception_hint" if stacked => DiagnosticsItem::Hint,
                "constraint_name" if stacked => DiagnosticsItem::Constraint,
                "pg_exception_context" if stacked => DiagnosticsItem::ExceptionContext,
                "column_name" if stacked => DiagnosticsItem::Column,
                "table_name" if stacked => DiagnosticsItem::Table,
                "schema_name" if stacked => DiagnosticsItem::Schema,
                "pg_datatype_name" if stacked => DiagnosticsItem::DataType,
                _ => {
                    let message = "unrecognized GET DIAGNOSTICS item";
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
                }
            };
            items.push((target, item));
            if !self.takes_symbol(",") {
                break;
            }
        }
        self.expect_symbol(";")?;
        Ok(BlockAction::Diagnostics(items, stacked))
    }

    /// Reads a statement of SQL, with INTO anywhere in it.
    fn sql(&mut self) -> Result<BlockAction> {
        let start = self.offset();
        let first = self.at;
        let (mut text, mut into) = (String::new(), None);
        let mut depth = 0_usize;
        let mut from = start;
        loop {
            let token = self.token(self.at).clone();
            match &token.kind {
                LexemeKind::End => return Err(self.error()),
                LexemeKind::Symbol("(") => depth += 1,
                LexemeKind::Symbol(")") => depth = depth.saturating_sub(1),
                LexemeKind::Symbol(";") if depth == 0 => {
                    text.push_str(self.text[from..token.start].trim_end());
                    break;
                }
                LexemeKind::Word(word) if word == "into" && depth == 0 && self.at > first => {
                    let before = self.at - 1;
                    let is_part =
                        self.is_word_at(before, "insert") || self.is_word_at(before, "merge");
                    if !is_part && into.is_none() {
                        text.push_str(&self.text[from..token.start]);
                        self.at += 1;
                        into = Some(self.into()?);
                        from = self.offset();
                        text.push(' ');
                        continue;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        self.expect_symbol(";")?;
        let query = self.fragment(text);
        Ok(BlockAction::Run(BodyQuery::Static(query), into, false))
    }
}
