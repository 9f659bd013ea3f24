//! What the database must hold, and the comparison with what it does hold.

use anyhow::{Result, ensure};

use super::random::mix;
use super::{SET_SIZE, Step, Workload, decode, value_of};

/// The step that last wrote each set: enough to know every record, because a step gives a key
/// always the same value however often it is touched.
#[derive(Clone, Debug)]
pub struct Content {
    last_writer: Vec<Option<Step>>,
}

/// How many records, and a checksum that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Records seen.
    pub count: u64,
    /// Sum of a mixed word for each record.
    pub checksum: u64,
}

impl Digest {
    /// Adds one record.
    pub fn add(&mut self, key: u64, value: u64) {
        self.count += 1;
        self.checksum = self.checksum.wrapping_add(mix(key ^ mix(value)));
    }
}

impl Content {
    /// An empty database.
    pub fn empty(workload: &Workload) -> Self {
        Content { last_writer: vec![None; workload.sets() as usize] }
    }

    /// Takes note of a step that worked on `sets`.
    pub fn apply(&mut self, step: Step, sets: impl IntoIterator<Item = u64>) {
        let writer = match step {
            Step::Fetch => return,
            Step::Delete => None,
            other => Some(other),
        };
        for set in sets {
            self.last_writer[set as usize] = writer;
        }
    }

    /// The value `key` must have.
    pub fn value(&self, key: u64) -> Option<u64> {
        self.last_writer[(key / SET_SIZE) as usize].map(|step| value_of(step, key))
    }

    /// The digest of everything that must be there.
    pub fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        for key in 0..self.last_writer.len() as u64 * SET_SIZE {
            if let Some(value) = self.value(key) {
                digest.add(key, value);
            }
        }
        digest
    }

    /// Compares the records that `scan` visits with what must be there.
    pub fn verify(
        &self,
        workload: &Workload,
        scan: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])) -> Result<()>,
    ) -> Result<()> {
        let mut found = Digest::default();
        let mut malformed = 0u64;
        scan(&mut |key, value| match (
            decode(key, workload.key_size),
            decode(value, workload.value_size),
        ) {
            (Some(key), Some(value)) => found.add(key, value),
            _ => malformed += 1,
        })?;
        ensure!(malformed == 0, "{malformed} records do not have the layout that was written");
        let expected = self.digest();
        ensure!(
            found.count == expected.count,
            "the database holds {} records, {} were expected",
            found.count,
            expected.count
        );
        ensure!(
            found == expected,
            "the database holds the expected {} records, but the checksum of their contents is wrong",
            expected.count
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::*;

    #[test]
    fn a_lost_update_shows() {
        let workload = small();
        let mut content = Content::empty(&workload);
        content.apply(Step::Populate, 0..100);
        content.apply(Step::Update, 0..100);
        let records = |lost: Option<u64>| {
            move |visit: &mut dyn FnMut(&[u8], &[u8])| {
                let (mut key, mut value) = (Vec::new(), Vec::new());
                for n in 0..1000 {
                    let step = if lost == Some(n) { Step::Populate } else { Step::Update };
                    small().encode_key(n, &mut key);
                    small().encode_value(step, n, &mut value);
                    visit(&key, &value);
                }
                Ok(())
            }
        };
        assert!(content.verify(&workload, records(None)).is_ok());
        assert!(content.verify(&workload, records(Some(77))).is_err());
        content.apply(Step::Delete, [3]);
        let message = content.verify(&workload, records(None)).unwrap_err().to_string();
        assert!(message.contains("1000") && message.contains("990"), "{message}");
    }
}
