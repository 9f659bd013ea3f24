//! The answers of a running transaction, and their check at its position in commit order.

use quickbeam::Isolation;

use crate::model::{Answer, Model, Own, Question, View};

pub(super) struct Read {
    pub(super) name: String,
    pub(super) own: Option<Option<Own>>,
    pub(super) question: Question,
    pub(super) answer: Answer,
}

/// The facts that a running transaction must be consistent with.
pub(super) struct Checks {
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    /// Commits that may be its snapshot.
    pub(super) candidates: Vec<u64>,
    pub(super) reads: Vec<Read>,
    pub(super) view: View,
    /// The tree that it wrote to is unknown.
    pub(super) unsure: bool,
}

/// Checks a transaction at its position in commit order, and applies its changes to the model.
pub(super) fn accept(
    model: &mut Model,
    checks: &Checks,
    timestamp: u64,
) -> std::result::Result<(), String> {
    let newest = model.newest();
    for read in &checks.reads {
        let own = read.own.as_ref();
        let now = model.answer(&read.name, own, &read.question, newest);
        if now != read.answer {
            return Err(format!(
                "commit {timestamp} is not serializable: {:?} {} was {}, and is {} before it",
                read.name,
                short_question(&read.question),
                short(&read.answer),
                short(&now)
            ));
        }
    }
    let snapshot = checks.candidates.last().copied().unwrap_or(0);
    if checks.isolation != Isolation::ReadCommitted {
        for (name, own) in &checks.view {
            if own.as_ref().is_none_or(|own| own.renamed) && model.last_name_change(name) > snapshot
            {
                return Err(format!("commit {timestamp} lost an update of the name {name:?}"));
            }
            let Some(Own { tree: Some(tree), writes, .. }) = own else { continue };
            for key in writes.keys() {
                if model.last_change(*tree, key) > snapshot {
                    let key = String::from_utf8_lossy(&key[..key.len().min(12)]);
                    return Err(format!("commit {timestamp} lost an update of {name:?} {key}"));
                }
            }
        }
    }
    model.apply(&checks.view, timestamp)
}

pub(super) fn short(answer: &Answer) -> String {
    match answer {
        Answer::Record(key, value) => {
            let key = String::from_utf8_lossy(&key[..key.len().min(12)]);
            let first: Vec<u8> = value.iter().copied().take(3).collect();
            format!("{key} of {} bytes {first:?}", value.len())
        }
        Answer::Records(records) => format!("{} records", records.len()),
        other => format!("{other:?}"),
    }
}

pub(super) fn short_question(question: &Question) -> String {
    let (what, key) = match question {
        Question::Name => return "name".into(),
        Question::All => return "all".into(),
        Question::Before(None) => return "last".into(),
        Question::Get(key) => ("get", key),
        Question::Old(key) => ("old", key),
        Question::Exists(key) => ("exists", key),
        Question::AtOrAfter(key) => ("from", key),
        Question::After(key) => ("after", key),
        Question::AtOrBefore(key) => ("to", key),
        Question::Before(Some(key)) => ("before", key),
    };
    format!("{what} {}", String::from_utf8_lossy(&key[..key.len().min(12)]))
}
