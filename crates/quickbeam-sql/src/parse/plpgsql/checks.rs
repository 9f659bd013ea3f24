//! Checks of the statements of a body against the function that has it.

use super::tree::{AssignmentTarget, Block, BlockAction, BlockBody, BlockStatement};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::{ArgumentMode, Routine, RoutineResult};

/// Checks RETURN and assignments in a body of a function or procedure.
pub fn check_statements(body: &BlockBody, routine: &Routine) -> Result<()> {
    let has_outputs = routine.arguments.iter().any(|it| it.mode != ArgumentMode::In);
    Checker { body, routine, has_outputs }.block(&body.block)
}

struct Checker<'b> {
    body: &'b BlockBody,
    routine: &'b Routine,
    has_outputs: bool,
}

#[cold]
fn refused(state: SqlState, message: &str) -> Result<()> {
    Err(SqlError::new(state, message))
}

impl Checker<'_> {
    fn block(&self, block: &Block) -> Result<()> {
        self.statements(&block.body)?;
        block.handlers.iter().try_for_each(|handler| self.statements(&handler.body))
    }

    fn statements(&self, list: &[BlockStatement]) -> Result<()> {
        list.iter().try_for_each(|statement| self.statement(&statement.action))
    }

    fn statement(&self, action: &BlockAction) -> Result<()> {
        match action {
            BlockAction::Block(block) => self.block(block),
            BlockAction::If(branches, otherwise, _) => {
                branches.iter().try_for_each(|(_, list)| self.statements(list))?;
                self.statements(otherwise)
            }
            BlockAction::Loop(_, _, list) => self.statements(list),
            BlockAction::Return => self.empty_return(),
            BlockAction::ReturnValue(_) | BlockAction::ReturnRecord(_, false) => {
                self.return_of_value()
            }
            BlockAction::ReturnNext(Some(_)) | BlockAction::ReturnRecord(_, true) => {
                self.next_row("NEXT")?;
                match self.has_outputs {
                    true => refused(
                        SqlState::DatatypeMismatch,
                        "RETURN NEXT cannot have a parameter in function with OUT parameters",
                    ),
                    false => Ok(()),
                }
            }
            BlockAction::ReturnNext(None) => self.next_row("NEXT"),
            BlockAction::ReturnQuery(_) => self.next_row("QUERY"),
            BlockAction::Assign(target, _) => self.assigned(target),
            BlockAction::Run(_, Some(into), _) => {
                into.targets.iter().try_for_each(|target| self.assigned(target))
            }
            BlockAction::Fetch(_, _, Some(targets)) => {
                targets.iter().try_for_each(|target| self.assigned(target))
            }
            BlockAction::Diagnostics(items, _) => {
                items.iter().try_for_each(|(target, _)| self.assigned(target))
            }
            BlockAction::Nothing
            | BlockAction::AssignPart(..)
            | BlockAction::Leave(..)
            | BlockAction::Raise(_)
            | BlockAction::Assert(..)
            | BlockAction::Run(_, None, _)
            | BlockAction::Call(..)
            | BlockAction::Open(..)
            | BlockAction::Fetch(_, _, None)
            | BlockAction::Close(_)
            | BlockAction::EndTransaction { .. } => Ok(()),
        }
    }

    fn empty_return(&self) -> Result<()> {
        let has_result =
            !matches!(self.routine.result, RoutineResult::Procedure | RoutineResult::Void);
        match has_result && !self.routine.returns_set && !self.has_outputs {
            true => refused(SqlState::SyntaxError, "missing expression at or near \";\""),
            false => Ok(()),
        }
    }

    fn return_of_value(&self) -> Result<()> {
        let (state, message) = match &self.routine.result {
            RoutineResult::Procedure => {
                (SqlState::SyntaxError, "RETURN cannot have a parameter in a procedure")
            }
            RoutineResult::Void => (
                SqlState::DatatypeMismatch,
                "RETURN cannot have a parameter in function returning void",
            ),
            _ if self.routine.returns_set => {
                let message = "RETURN cannot have a parameter in function returning set";
                return Err(SqlError::new(SqlState::DatatypeMismatch, message)
                    .with_hint("Use RETURN NEXT or RETURN QUERY."));
            }
            _ if self.has_outputs => (
                SqlState::DatatypeMismatch,
                "RETURN cannot have a parameter in function with OUT parameters",
            ),
            _ => return Ok(()),
        };
        refused(state, message)
    }

    fn next_row(&self, word: &str) -> Result<()> {
        match self.routine.returns_set {
            true => Ok(()),
            false => {
                let message = format!("cannot use RETURN {word} in a non-SETOF function");
                refused(SqlState::DatatypeMismatch, &message)
            }
        }
    }

    fn assigned(&self, target: &AssignmentTarget) -> Result<()> {
        match self.body.variables.get(target.variable) {
            Some(variable) if variable.constant => {
                let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
                refused(SqlState::ErrorInAssignment, &message)
            }
            _ => Ok(()),
        }
    }
}
