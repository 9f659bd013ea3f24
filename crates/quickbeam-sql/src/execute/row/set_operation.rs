//! UNION, INTERSECT and EXCEPT.
//!
//! Above: operators over the result slot. Below: key tables, partitions of a temporary file. Rows
//! that do not fit into memory are spilled to partitions (SPILL-1).
//!
//! - SETS-1: a row is in the table of this level or spilled for the next one, never both. So all
//!   equal rows of both sides meet in one table.

use quickbeam::invariant;

use super::{Context, MemoryCharge, QueryProgram};
use crate::bind::CombineKind;
use crate::error::Result;
use crate::execute::hash::key_table::{KeyTable, append};
use crate::execute::spill::{PairedPartitions, read_value, write_value};
use crate::expression::Current;
use crate::types::Value;

/// Memory of a row in the table, besides its key.
const ROW_BYTES: usize = 56;

/// A set operation.
#[derive(Debug)]
pub struct SetOperationExec {
    kind: CombineKind,
    all: bool,
    sides: Vec<QueryProgram>,
    slot: usize,
    /// The side read now.
    side: usize,
    seen: KeyTable,
    /// How often each row of the second side occurs.
    counts: Vec<u64>,
    key: Vec<u8>,
    account: MemoryCharge,
    spilled: Option<PairedPartitions>,
    /// Whether the spilled rows are read.
    from_spilled: bool,
    /// Whether a row of the first side was spilled because the table is full.
    is_full: bool,
    /// Whether the second side was read.
    has_second: bool,
    fresh: bool,
}

impl SetOperationExec {
    pub fn new(
        kind: CombineKind,
        all: bool,
        sides: Vec<QueryProgram>,
        slot: usize,
    ) -> SetOperationExec {
        SetOperationExec {
            kind,
            all,
            sides,
            slot,
            side: 0,
            seen: KeyTable::default(),
            counts: Vec::new(),
            key: Vec::new(),
            account: MemoryCharge::default(),
            spilled: None,
            from_spilled: false,
            is_full: false,
            has_second: false,
            fresh: true,
        }
    }

    pub fn rewind(&mut self) {
        self.sides.iter_mut().for_each(|side| side.root.rewind());
        self.fresh = true;
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.sides.iter().for_each(|side| side.root.counts(counts));
    }

    fn begin(&mut self, context: &Context<'_>) {
        if let Some(spilled) = self.spilled.take() {
            spilled.remove(context);
        }
        self.from_spilled = false;
        self.side = 0;
        self.forget(context);
    }

    /// Empties the table before the rows of another level are read.
    fn forget(&mut self, context: &Context<'_>) {
        self.account.clear(context);
        self.seen.clear();
        self.counts.clear();
        (self.is_full, self.has_second) = (false, false);
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.begin(context);
        }
        loop {
            if !self.has_second {
                self.has_second = true;
                if self.kind != CombineKind::Union {
                    self.read_second(context)?;
                }
            }
            while self.next_first(context)? {
                if self.all && self.kind == CombineKind::Union {
                    return Ok(true);
                }
                self.make_key(context);
                if self.is_returned(context)? {
                    return Ok(true);
                }
            }
            if !self.open_spilled(context)? {
                return Ok(false);
            }
        }
    }

    fn make_key(&mut self, context: &Context<'_>) {
        self.key.clear();
        for value in values_of(context, self.slot) {
            append(value.as_ref(), &mut self.key);
        }
    }

    /// Moves to the next row of a side.
    fn next_of(&mut self, side: usize, context: &mut Context<'_>) -> Result<bool> {
        match self.sides.get_mut(side) {
            Some(side) => side.next_into(context, self.slot),
            None => Ok(false),
        }
    }

    /// Moves to the next spilled row.
    fn next_spilled(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        context.check_cancelled()?;
        let Some(mut record) = spilled.next()? else { return Ok(false) };
        let slot = context.slot(self.slot)?;
        slot.values.clear();
        while !record.is_empty() {
            slot.values.push(read_value(&mut record)?.to_value());
        }
        slot.current = Current::Values;
        Ok(true)
    }

    /// Moves to the next row of the first side, or of all sides of a UNION.
    fn next_first(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.from_spilled {
            return self.next_spilled(context);
        }
        let sides = if self.kind == CombineKind::Union { self.sides.len() } else { 1 };
        while self.side < sides {
            if self.next_of(self.side, context)? {
                return Ok(true);
            }
            self.side += 1;
        }
        Ok(false)
    }

    /// Counts the rows of the second side.
    fn read_second(&mut self, context: &mut Context<'_>) -> Result<()> {
        loop {
            let more = match self.from_spilled {
                true => self.next_spilled(context)?,
                false => self.next_of(1, context)?,
            };
            if !more {
                break;
            }
            self.make_key(context);
            let absent = match self.seen.locate(&self.key) {
                Ok(number) => {
                    if let Some(count) = self.counts.get_mut(number) {
                        *count += 1;
                    }
                    continue;
                }
                Err(absent) => absent,
            };
            let has_spilled = self.spilled.as_ref().is_some_and(PairedPartitions::has_build_rows);
            if has_spilled || !self.fits(context)? {
                let values = values_of(context, self.slot);
                let spilled = partitions(&mut self.spilled, context)?;
                spilled.push_build(&self.key, |out| write_all(values, out))?;
                continue;
            }
            invariant!(SETS_1, !self.spills(), "a row of the table is spilled, too");
            self.seen.insert_absent(&self.key, absent);
            self.counts.push(1);
        }
        if let Some(spilled) = &mut self.spilled {
            spilled.finish_build()?;
            spilled.open_probe();
        }
        Ok(())
    }

    /// Whether rows that equal the current one may be spilled.
    fn spills(&self) -> bool {
        self.is_full
            || self.spilled.as_ref().is_some_and(|spilled| spilled.has_build_rows_of(&self.key))
    }

    /// Charges one more row of the table. Returns false if it does not fit.
    fn fits(&mut self, context: &Context<'_>) -> Result<bool> {
        let bytes = self.account.kept() + self.key.len() + ROW_BYTES;
        self.account.fits(bytes, context)
    }

    /// Whether the current row of the first side, whose key was made, is returned. It may be
    /// written to a partition instead.
    fn is_returned(&mut self, context: &Context<'_>) -> Result<bool> {
        let wants = self.kind == CombineKind::Intersect;
        let absent = match self.seen.locate(&self.key) {
            Ok(number) => {
                return Ok(match self.counts.get_mut(number) {
                    // With ALL, each row of the second side cancels one of the first.
                    Some(count) if self.all && *count > 0 => {
                        *count -= 1;
                        wants
                    }
                    Some(count) if !self.all && wants => std::mem::take(count) > 0,
                    Some(_) => self.all && !wants,
                    None => false,
                });
            }
            Err(absent) => absent,
        };
        let is_matched_later =
            self.spilled.as_ref().is_some_and(|spilled| spilled.has_build_rows_of(&self.key));
        if !is_matched_later {
            if wants || self.all {
                return Ok(!wants);
            }
            if !self.is_full && self.fits(context)? {
                invariant!(SETS_1, !self.spills(), "a row of the table is spilled, too");
                self.seen.insert_absent(&self.key, absent);
                if self.kind == CombineKind::Except {
                    self.counts.push(0);
                }
                return Ok(true);
            }
            self.is_full = true;
        }
        let values = values_of(context, self.slot);
        let spilled = partitions(&mut self.spilled, context)?;
        spilled.push_probe(&self.key, |out| write_all(values, out))?;
        Ok(false)
    }

    /// Begins to read the spilled rows. Returns false if there are none.
    fn open_spilled(&mut self, context: &Context<'_>) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        if !spilled.open_next()? {
            return Ok(false);
        }
        if self.kind == CombineKind::Union {
            spilled.open_probe();
        }
        self.from_spilled = true;
        self.forget(context);
        Ok(true)
    }
}

fn values_of<'c>(context: &'c Context<'_>, slot: usize) -> &'c [Value] {
    context.slots.get(slot).map_or(&[][..], |slot| &slot.values)
}

fn write_all(values: &[Value], out: &mut Vec<u8>) {
    values.iter().for_each(|value| write_value(value.as_ref(), out));
}

fn partitions<'w>(
    spilled: &'w mut Option<PairedPartitions>,
    context: &Context<'_>,
) -> Result<&'w mut PairedPartitions> {
    Ok(match spilled {
        Some(spilled) => spilled,
        spilled => spilled.insert(PairedPartitions::new(context)?),
    })
}
