//! CREATE SCHEMA with elements.

use smol_str::SmolStr;

use super::Session;
use crate::catalog::PUBLIC;
use crate::compile::CompileContext;
use crate::error::Result;
use crate::parse::SchemaStatement;
use crate::session::definition::new_owner;
use crate::session::executor::ResultRows;
use crate::session::prepared_statement::PreparedStatement;

impl Session {
    /// Makes a schema and what is in it, by statements of its owner whose search path begins with
    /// the schema.
    pub(in crate::session) fn create_with_elements(
        &self,
        statement: &SchemaStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let (text, schema) = (&statement.text, &statement.name);
        let owner = statement.owner.as_ref().map(|name| new_owner(name, look)).transpose()?;
        self.run_element(text.get(statement.create.clone()).unwrap_or_default(), look)?;
        let mut path: Vec<SmolStr> = vec![schema.clone()];
        match &look.path {
            Some(known) => path.extend(known.iter().cloned()),
            None => path.push(PUBLIC),
        }
        let path_before = self.search_path.replace(Some(path.into()));
        let role = self.role.replace(owner.unwrap_or_else(|| self.role.get()));
        let run = || -> Result<()> {
            for element in &statement.elements {
                let part = text.get(element.clone()).unwrap_or_default();
                self.run_element(part, look).map_err(|error| error.shifted(element.start))?;
            }
            Ok(())
        };
        let done = run();
        self.role.set(role);
        self.search_path.replace(path_before);
        done
    }

    fn run_element(&self, text: &str, look: &CompileContext<'_>) -> Result<()> {
        let mut statement = PreparedStatement::new(text.trim_end());
        self.run(&mut statement, look.transaction, &[], ResultRows::Refused).map(drop)
    }
}
