//! The items of jsonpath: JSON values, and dates and times.

use std::sync::Arc;

use super::path_times::PathTime;
use crate::error::Result;
use crate::expression::builtin::mismatch;
use crate::types::json::{Json, JsonKind, write_string};
use crate::types::{Decimal, Value};

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Null,
    Boolean(bool),
    Number(Decimal),
    String(Arc<str>),
    Array(Arc<[Item]>),
    Object(Arc<[(String, Item)]>),
    /// What the method `datetime` returns.
    Time(PathTime),
}

impl Item {
    pub fn of(json: &Json<'_>) -> Result<Item> {
        Ok(match &json.kind {
            JsonKind::Null => Item::Null,
            JsonKind::Boolean(truth) => Item::Boolean(*truth),
            JsonKind::Number => Item::Number(json.number()?.ok_or_else(mismatch)?),
            JsonKind::String(text) => Item::String(text.as_ref().into()),
            JsonKind::Array(list) => Item::Array(list.iter().map(Item::of).collect::<Result<_>>()?),
            JsonKind::Object(members) => {
                let member = |(name, value): &(std::borrow::Cow<'_, str>, Json<'_>)| {
                    Ok((name.clone().into_owned(), Item::of(value)?))
                };
                Item::Object(members.iter().map(member).collect::<Result<_>>()?)
            }
        })
    }

    fn write(&self, out: &mut String) {
        match self {
            Item::Null => out.push_str("null"),
            Item::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Item::Number(number) => out.push_str(&number.to_string()),
            Item::String(text) => write_string(out, text),
            Item::Time(time) => write_string(out, &time.text()),
            Item::Array(list) => {
                out.push('[');
                for (at, item) in list.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Item::Object(members) => {
                out.push('{');
                for (at, (name, item)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    write_string(out, name);
                    out.push_str(": ");
                    item.write(out);
                }
                out.push('}');
            }
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Item::Null => "null",
            Item::Boolean(_) => "boolean",
            Item::Number(_) => "number",
            Item::String(_) => "string",
            Item::Time(time) => time.name(),
            Item::Array(_) => "array",
            Item::Object(_) => "object",
        }
    }

    pub fn value(&self) -> Value {
        let mut out = String::new();
        self.write(&mut out);
        Value::jsonb(out)
    }
}
