//! Current rows of several slots in a record of a temporary file, with their keys.

use super::{damaged, read_value, take, write_value};
use crate::error::Result;
use crate::execute::row::Context;
use crate::expression::Current;

/// Keys of rows that were read from a file, by slot.
pub type SavedKeys = Vec<(usize, Vec<u8>)>;

/// The keys of current rows, which a change of the rows needs.
pub type KeyOf<'k> = &'k dyn Fn(usize) -> Option<&'k [u8]>;

const NOTHING: u8 = 0;
const ENCODED: u8 = 1;
const VALUES: u8 = 2;

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_bytes<'b>(record: &mut &'b [u8]) -> Result<&'b [u8]> {
    let length = u32::from_le_bytes(*take(record)?) as usize;
    let (bytes, rest) = record.split_at_checked(length).ok_or_else(damaged)?;
    *record = rest;
    Ok(bytes)
}

/// Appends the current rows of slots, and their keys.
pub fn save_rows(slots: &[usize], context: &Context<'_>, key_of: KeyOf<'_>, out: &mut Vec<u8>) {
    for number in slots {
        let Some(slot) = context.slots.get(*number) else { continue };
        match slot.current {
            Current::Nothing => out.push(NOTHING),
            Current::Values => {
                out.push(VALUES);
                out.extend_from_slice(&(slot.values.len() as u32).to_le_bytes());
                slot.values.iter().for_each(|value| write_value(value.as_ref(), out));
            }
            Current::Record(_) | Current::Bytes(..) => {
                out.push(ENCODED);
                write_bytes(slot.row(), out);
            }
        }
        match key_of(*number) {
            None => out.push(0),
            Some(key) => {
                out.push(1);
                write_bytes(key, out);
            }
        }
    }
}

/// Makes saved rows current, and returns their keys.
pub fn restore_rows(
    slots: &[usize],
    mut record: &[u8],
    context: &mut Context<'_>,
    keys: &mut SavedKeys,
) -> Result<()> {
    keys.clear();
    for number in slots {
        let slot = context.slot(*number)?;
        let [kind] = *take(&mut record)?;
        slot.current = match kind {
            NOTHING => Current::Nothing,
            VALUES => {
                let count = u32::from_le_bytes(*take(&mut record)?);
                slot.values.clear();
                for _ in 0..count {
                    slot.values.push(read_value(&mut record)?.to_value());
                }
                Current::Values
            }
            ENCODED => {
                slot.bytes.clear();
                slot.bytes.extend_from_slice(take_bytes(&mut record)?);
                Current::Bytes(0, slot.bytes.len())
            }
            _ => return Err(damaged()),
        };
        let [has_key] = *take(&mut record)?;
        if has_key != 0 {
            keys.push((*number, take_bytes(&mut record)?.to_vec()));
        }
    }
    Ok(())
}
