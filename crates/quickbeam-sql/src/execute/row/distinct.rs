//! DISTINCT by a hash table, which spills to partitions on disk.

use super::{Context, MemoryCharge, Operator};
use crate::error::Result;
use crate::execute::hash::key_table::{KeyTable, append};
use crate::execute::spill::{Partitions, RowImage, damaged, take};
use crate::expression::{Datum, Expr};
use crate::plan::{PlanNode, produced};
use crate::table::{Origin, Splice};
use crate::types::ValueRef;

/// Hash-based DISTINCT. Rows whose keys do not fit into memory are spilled to partitions.
#[derive(Debug)]
pub struct Distinct {
    pub input: Operator,
    outputs: Vec<Expr>,
    /// Copies the outputs as encoded in rows.
    splice: Option<Splice>,
    table: KeyTable,
    key: Vec<u8>,
    spilled: Option<Partitions>,
    /// Whether the spilled rows are read.
    from_spilled: bool,
    image: RowImage,
    account: MemoryCharge,
    fresh: bool,
}

impl Distinct {
    pub fn new(input: Operator, outputs: Vec<Expr>, node: &PlanNode) -> Distinct {
        let origin = |value: &Expr| -> Option<Origin<'_>> {
            let column = value.as_column()?;
            Some((column.slot, node.table_in(column.slot)?, column.column))
        };
        let origins: Option<Vec<Origin<'_>>> = outputs.iter().map(origin).collect();
        let splice = origins.and_then(|origins| Splice::for_comparison(&origins));
        let (table, key) = (KeyTable::default(), Vec::new());
        let image = RowImage::new(outputs.iter(), &produced(node));
        Distinct {
            input,
            outputs,
            splice,
            table,
            key,
            spilled: None,
            from_spilled: false,
            image,
            account: MemoryCharge::default(),
            fresh: true,
        }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.fresh = true;
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.fresh {
            self.fresh = false;
            self.from_spilled = false;
            self.account.clear(context);
            self.table.clear();
            if let Some(spilled) = self.spilled.take() {
                spilled.remove(context);
            }
        }
        while self.next_input(context)? {
            let Err(absent) = self.table.locate(&self.key) else { continue };
            let bytes = self.account.kept() + self.key.len() + 48;
            let has_spilled = self.spilled.as_ref().is_some_and(Partitions::has_new_rows);
            if has_spilled || !self.account.fits(bytes, context)? {
                self.spill(context)?;
                continue;
            }
            self.table.insert_absent(&self.key, absent);
            return Ok(true);
        }
        Ok(false)
    }

    /// Moves to the next row of the input, or of the spilled ones, and makes its key.
    fn next_input(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.from_spilled {
            if self.input.next(context)? {
                self.make_key(context)?;
                return Ok(true);
            }
            self.from_spilled = true;
        }
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        context.check_cancelled()?;
        let mut is_open = true;
        while is_open {
            if let Some(mut record) = spilled.next()? {
                let length = u32::from_le_bytes(*take(&mut record)?) as usize;
                let (key, image) = record.split_at_checked(length).ok_or_else(damaged)?;
                self.key.clear();
                self.key.extend_from_slice(key);
                self.image.restore(image, context)?;
                return Ok(true);
            }
            is_open = spilled.open_next()?;
            self.account.clear(context);
            self.table.clear();
        }
        Ok(false)
    }

    /// Writes the current row to the partition of its key.
    fn spill(&mut self, context: &Context<'_>) -> Result<()> {
        let mut record = (self.key.len() as u32).to_le_bytes().to_vec();
        record.extend_from_slice(&self.key);
        self.image.save(context, &mut record)?;
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            spilled => spilled.insert(Partitions::new(context)?),
        };
        spilled.push(&self.key, |out| out.extend_from_slice(&record))
    }

    /// Makes the key of the current row.
    fn make_key(&mut self, context: &Context<'_>) -> Result<()> {
        self.key.clear();
        let row = |slot: usize| context.slots.get(slot).map_or(&[][..], |slot| slot.row());
        if let Some(splice) = &self.splice
            && splice.append(row, &mut self.key)?
        {
            return Ok(());
        }
        let frame = context.frame();
        let Some(splice) = &self.splice else {
            for output in &self.outputs {
                append(output.evaluate(&frame)?.as_ref(), &mut self.key);
            }
            return Ok(());
        };
        let datums: Result<Vec<Datum<'_>>> =
            self.outputs.iter().map(|output| output.evaluate(&frame)).collect();
        let datums = datums?;
        let value = |place: usize| datums.get(place).map_or(ValueRef::Null, Datum::as_ref);
        splice.append_values(value, &mut self.key)
    }
}
