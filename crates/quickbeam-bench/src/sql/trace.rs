//! A connection that says on standard error what passes through it, for `--trace`.

use super::{Access, Prepared, SqlConnection, Value, VisitRow};
use crate::engine::{OpError, OpResult};

/// Wraps the connection of one thread.
pub struct Traced<'c> {
    inner: Box<dyn SqlConnection + 'c>,
    thread: usize,
    texts: Vec<String>,
}

impl<'c> Traced<'c> {
    /// Traces `inner`, which serves the thread with this number.
    pub fn new(inner: Box<dyn SqlConnection + 'c>, thread: usize) -> Traced<'c> {
        Traced { inner, thread, texts: Vec::new() }
    }

    fn say(&self, what: &str, parameters: &[Value<'_>]) {
        let values: Vec<String> = parameters.iter().map(Value::to_string).collect();
        eprintln!("[{}] {what} [{}]", self.thread, values.join(", "));
    }

    fn told<T>(&self, outcome: OpResult<T>) -> OpResult<T> {
        match &outcome {
            Err(OpError::Retry) => eprintln!("[{}] given up by the engine", self.thread),
            Err(OpError::Failed(error)) => eprintln!("[{}] failed: {error:#}", self.thread),
            Ok(_) => {}
        }
        outcome
    }
}

impl SqlConnection for Traced<'_> {
    fn run(&mut self, sql: &str) -> anyhow::Result<()> {
        self.say(sql, &[]);
        self.inner.run(sql)
    }

    fn prepare(&mut self, sql: &str) -> anyhow::Result<Prepared> {
        let prepared = self.inner.prepare(sql)?;
        self.texts.resize(self.texts.len().max(prepared.0 + 1), String::new());
        self.texts[prepared.0] = sql.to_owned();
        Ok(prepared)
    }

    fn execute(&mut self, statement: Prepared, parameters: &[Value<'_>]) -> OpResult<u64> {
        self.say(&self.texts[statement.0], parameters);
        let outcome = self.inner.execute(statement, parameters);
        self.told(outcome)
    }

    fn query(
        &mut self,
        statement: Prepared,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult {
        self.say(&self.texts[statement.0], parameters);
        let outcome = self.inner.query(statement, parameters, visit);
        self.told(outcome)
    }

    fn begin(&mut self, access: Access) -> OpResult {
        self.say("BEGIN", &[]);
        let outcome = self.inner.begin(access);
        self.told(outcome)
    }

    fn commit(&mut self) -> OpResult {
        self.say("COMMIT", &[]);
        let outcome = self.inner.commit();
        self.told(outcome)
    }

    fn rollback(&mut self) {
        self.say("ROLLBACK", &[]);
        self.inner.rollback();
    }
}
