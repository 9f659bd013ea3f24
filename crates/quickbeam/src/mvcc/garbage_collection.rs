//! Version garbage collection: merges versions that no snapshot separates, which bounds the undo
//! entries kept for an old snapshot.
//!
//! Above: the end of a transaction, and the background thread. Below: committed undo entries. A
//! committed transaction that some snapshot does not include is *sealed* a little later: its undo
//! entries become a [`CommittedUndo`](super::undo::committed::CommittedUndo). Then each entry is
//! compared with the next older one of the same record. If no snapshot in use separates the two
//! commits, no reader stops between them: the newer entry takes over the older one's content, and
//! the older one is removed (VER-4). So a record that changes repeatedly while an old snapshot
//! exists keeps one entry for each interval between snapshots, regardless of the number of changes.
//! Versions of transactions below the horizon go all at once (`horizon.rs`).
//!
//! - COLLECT-1: one thread at a time merges (the lock of [`GarbageCollector`]). Each version word
//!   has one reference to it: from the page, or from the next newer entry. So no reference to a
//!   merged entry remains. (by type)
//! - COLLECT-2: the newer entry is changed first. A reader that noted the older word before that
//!   finds its entry removed, and reads the page again.
//!
//! Sources: Lee et al., "Hybrid Garbage Collection for Multi-Version Concurrency Control in SAP
//! HANA" (2016); Böttcher et al., "Scalable Garbage Collection for In-Memory MVCC Systems" (Steam,
//! 2019).

use std::sync::Arc;

use crate::failpoints::{Canary, planted};
use crate::sync::atomic::Ordering;
use crate::sync::locks::MutexGuard;

use super::snapshots::Live;
use super::transaction_table::{Known, Order, TransactionTable};
use super::undo::spill::SpillPosition;
use super::undo::{Before, TransactionRecord, TransactionState};
use super::{TransactionId, entry_of, writer_of};

/// Number of recent ids that are not sealed, because their snapshots usually end soon. Without an
/// old snapshot there are rarely more. The simulation has few transactions and must still merge
/// some.
pub(super) const RECENT: usize = if cfg!(feature = "simulation") { 2 } else { 64 };
/// Maximum number of ids that the end of a transaction seals: more than it adds.
const SEALED_PER_END: usize = 4;
/// Maximum number of undo entries of an id that the end of a transaction seals; the background
/// thread seals larger ones.
const ENTRIES_PER_END: usize = 64;
/// Entries that a pass visits in one round of the background thread, which has other tasks.
const ENTRIES_PER_ROUND: usize = 1 << 14;

/// The state of merging.
#[derive(Default)]
pub(super) struct GarbageCollector {
    /// The snapshots in use in the last round.
    seen: Live,
    /// Entries may have become mergeable since the last pass.
    due: bool,
    /// Sealed ids left after the last pass.
    left: usize,
    /// The current pass over all entries.
    pass: Option<MergePass>,
    /// Where the next undo entries are spilled.
    pub spill_position: SpillPosition,
    /// Entries visited so far.
    pub visited: usize,
}

/// A pass over all committed undo entries, in rounds.
struct MergePass {
    /// The snapshots in use when it began.
    live: Live,
    /// Remaining ids of the current shard.
    ids: Vec<TransactionId>,
    /// The next shard.
    shard: usize,
}

impl TransactionTable {
    /// Seals some of the ids that are no longer recent, and merges their entries.
    #[cold]
    pub(super) fn seal_recent(&self, mut order: MutexGuard<'_, Order>) {
        let live = self.snapshots.live(&self.newest_commit);
        let mut work = Vec::with_capacity(SEALED_PER_END);
        while order.recent.len() > RECENT && work.len() < SEALED_PER_END {
            let Some((id, writer)) = order.recent.pop_front() else { break };
            match writer.state() {
                TransactionState::Active => {
                    order.stragglers.insert(id, writer);
                }
                TransactionState::Aborted => order.recycle(writer),
                TransactionState::Committed(_) => {
                    if id == writer.id() {
                        order.keep_deferred(&writer);
                    }
                    if writer.entries() > ENTRIES_PER_END {
                        order.unsealed.push_back((id, writer));
                    } else {
                        work.push((id, writer));
                    }
                }
            }
        }
        drop(order);
        work.iter().for_each(|(id, writer)| self.seal(*id, writer));
        // If another thread is merging, a later change of the same records, or a pass, merges these
        // entries.
        if let Some(mut collector) = self.collector.try_lock() {
            work.iter().for_each(|(id, _)| self.merge(*id, &live, &mut collector));
        }
        let mut order = self.order.lock();
        work.into_iter().for_each(|(_, writer)| order.recycle(writer));
    }

    /// Moves the horizon, seals remaining ids, continues or begins a pass over all entries if that
    /// may be worthwhile, and spills entries. Called by the background thread.
    pub fn look_after(&self) {
        self.advance_fully();
        self.seal_rest();
        self.merge_round();
        self.spill_committed();
        self.spill.remove_unused();
    }

    /// Seals ids that were too large for the end of a transaction, or whose transaction ended after
    /// they were recent.
    fn seal_rest(&self) {
        loop {
            let mut collector = self.collector.lock();
            let mut order = self.order.lock();
            let Some((id, writer)) = order.unsealed.pop_front() else { return };
            let live = self.snapshots.live(&self.newest_commit);
            drop(order);
            self.seal(id, &writer);
            self.merge(id, &live, &mut collector);
            collector.spill_position.include(id);
            drop(collector);
            self.order.lock().recycle(writer);
            self.spill_committed();
        }
    }

    /// Continues the pass over all committed undo entries. A new pass begins if a snapshot has
    /// ended that may have separated some of them, or if many were added since the last pass.
    fn merge_round(&self) {
        let Some(mut pass) = self.pass_under_way() else { return };
        let mut left = ENTRIES_PER_ROUND;
        while left > 0 {
            if let Some(id) = pass.ids.pop() {
                let mut collector = self.collector.lock();
                let before = collector.visited;
                self.merge(id, &pass.live, &mut collector);
                left = left.saturating_sub(collector.visited - before);
            } else if let Some(shard) = self.shards().get(pass.shard) {
                let is_past = |(_, known): &(&TransactionId, &Known)| {
                    matches!(known, Known::CommittedUndo(_))
                };
                pass.ids.extend(shard.read().iter().filter(is_past).map(|(id, _)| *id));
                pass.shard += 1;
            } else {
                self.collector.lock().left = self.past_ids.load(Ordering::Relaxed);
                return;
            }
        }
        self.collector.lock().pass = Some(pass);
    }

    /// Returns the current pass, or a new one if it must begin now.
    fn pass_under_way(&self) -> Option<MergePass> {
        let past = self.past_ids.load(Ordering::Relaxed);
        let mut collector = self.collector.lock();
        let order = self.order.lock();
        let live = self.snapshots.live(&self.newest_commit);
        drop(order);
        let ended = !std::mem::replace(&mut collector.seen, live.clone()).are_all_in(&live);
        collector.due |= ended;
        if let Some(pass) = collector.pass.take() {
            return Some(pass);
        }
        collector.due |= past > 2 * collector.left + RECENT;
        let begins = std::mem::take(&mut collector.due) && past > 0;
        begins.then(|| MergePass { live, ids: Vec::new(), shard: 0 })
    }

    /// Seals an id of a committed transaction: converts its entries to their compact form.
    fn seal(&self, id: TransactionId, writer: &Arc<TransactionRecord>) {
        let TransactionState::Committed(timestamp) = writer.state() else { return };
        // Entries that cannot be read now stay where they are.
        let Ok(past) = writer.past(id, timestamp) else { return };
        let mut shard = self.shard(id).write();
        // The horizon may have passed it by now.
        let Some(known) = shard.get_mut(&id) else { return };
        match past {
            Some(past) => {
                self.past_ids.fetch_add(1, Ordering::Relaxed);
                self.past_bytes.fetch_add(past.allocated(), Ordering::Relaxed);
                *known = Known::CommittedUndo(past);
            }
            None => {
                shard.remove(&id);
            }
        }
    }

    /// Merges the entries of a sealed id with older ones that no snapshot separates from them.
    fn merge(&self, id: TransactionId, live: &Live, collector: &mut GarbageCollector) {
        let (timestamp, words) = match self.shard(id).read().get(&id) {
            Some(Known::CommittedUndo(past)) => (past.timestamp(), past.words()),
            _ => return,
        };
        collector.visited += words.len().max(1);
        let mut taken = Vec::new();
        let mut changes: Vec<(usize, Before, Vec<u8>)> = Vec::new();
        for (entry, mut word) in words {
            let mut change = None;
            while word != 0 {
                let older = writer_of(word);
                let shard = self.shard(older).read();
                let Some(Known::CommittedUndo(past)) = shard.get(&older) else { break };
                if live.separates(past.timestamp(), timestamp)
                    && !planted(Canary::VersionMergedEarly)
                {
                    break;
                }
                let Some(content) = past.entry(entry_of(word)) else { break };
                invariant!(
                    VER_4,
                    !live.separates(past.timestamp(), timestamp)
                        || planted(Canary::VersionMergedEarly),
                    "a snapshot separates the commits at {} and {timestamp}",
                    past.timestamp()
                );
                collector.visited += 1;
                taken.push(word);
                word = content.before.version;
                change = Some((entry, content.before, content.value.to_vec()));
            }
            changes.extend(change);
        }
        if changes.is_empty() {
            return;
        }
        self.change_past(id, |past| {
            past.replace(&changes);
            true
        });
        invariant!(COLLECT_2, self.is_merged(id, &changes), "id {id} refers to older versions");
        for word in taken {
            self.change_past(writer_of(word), |past| past.take_out(entry_of(word)));
        }
    }

    /// Returns whether the entries of a sealed id refer to the versions that `changes` says, as far
    /// as the id is known.
    fn is_merged(&self, id: TransactionId, changes: &[(usize, Before, Vec<u8>)]) -> bool {
        let shard = self.shard(id).read();
        let Some(Known::CommittedUndo(past)) = shard.get(&id) else { return true };
        changes.iter().all(|(entry, before, _)| {
            past.entry(*entry).is_some_and(|entry| entry.before.version == before.version)
        })
    }

    /// Changes the entries of a sealed id, which is removed if `change` returns false.
    fn change_past(
        &self,
        id: TransactionId,
        change: impl FnOnce(&mut super::undo::committed::CommittedUndo) -> bool,
    ) {
        let mut shard = self.shard(id).write();
        let Some(Known::CommittedUndo(past)) = shard.get_mut(&id) else { return };
        let before = past.allocated();
        let any = change(past);
        // Added before the subtraction, so that the count never underflows.
        self.past_bytes.fetch_add(past.allocated(), Ordering::Relaxed);
        self.past_bytes.fetch_sub(before, Ordering::Relaxed);
        drop(shard);
        if !any {
            self.forget_id(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::transaction_table::Resolved;
    use super::super::{Snapshots, Timestamp, version_word};
    use super::*;
    use crate::vfs::MemoryVfs;

    /// Records of eight bytes, each with the version word that its page would have.
    struct Scene {
        transactions: TransactionTable,
        records: Vec<(u64, u64)>,
    }

    impl Scene {
        fn new(records: usize) -> Scene {
            Scene {
                transactions: TransactionTable::with_snapshots(&MemoryVfs::new(), Snapshots::new()),
                records: vec![(0, 0); records],
            }
        }

        fn push(&mut self, writer: &Arc<TransactionRecord>, record: usize, value: u64) {
            let (version, old) = self.records[record];
            let before = Before { present: true, flags: 0, version };
            let key = [0; 16];
            let push = || {
                let fill = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&old.to_le_bytes());
                writer.push(1, &key, before, fill)
            };
            let version = push().unwrap_or_else(|| {
                self.transactions.make_room_for_undo(writer);
                push().unwrap()
            });
            self.records[record] = (version, value);
        }

        fn end(&self, writer: Arc<TransactionRecord>) -> Timestamp {
            let timestamp = self.transactions.newest_commit.load(Ordering::SeqCst) + 1;
            writer.set_committed(timestamp);
            self.transactions.newest_commit.store(timestamp, Ordering::SeqCst);
            self.transactions.finish(writer, crate::mvcc::Outcome::Committed);
            timestamp
        }

        /// Commits a change of each of those records, to the commit's timestamp.
        fn commit(&mut self, records: impl IntoIterator<Item = usize>) -> Timestamp {
            let writer = self.transactions.begin_writer(0);
            let timestamp = self.transactions.newest_commit.load(Ordering::SeqCst) + 1;
            records.into_iter().for_each(|record| self.push(&writer, record, timestamp));
            self.end(writer)
        }

        fn begin(&self) -> (usize, Timestamp) {
            let transactions = &self.transactions;
            transactions.snapshots.acquire(&transactions.newest_commit, Duration::ZERO).unwrap()
        }

        fn seen(&self, record: usize, snapshot: Timestamp) -> u64 {
            let (version, newest) = self.records[record];
            let mut value = Vec::new();
            if self.transactions.is_visible_to_all(version) {
                return newest;
            }
            let mut resolved =
                self.transactions.resolve(version, snapshot, None, &mut value).unwrap();
            if let Resolved::Hidden { version } = resolved {
                let hidden =
                    self.transactions.resolve_hidden(version, snapshot, &mut value).unwrap();
                resolved = hidden.unwrap_or(Resolved::Again);
            }
            match resolved {
                Resolved::InPage => newest,
                Resolved::Older { .. } => u64::from_le_bytes(value.try_into().unwrap()),
                Resolved::Again => self.seen(record, snapshot),
                other => panic!("{other:?}"),
            }
        }

        fn horizon(&self) -> TransactionId {
            self.transactions.horizon()
        }
    }

    #[test]
    fn busy_record_keeps_one_version_between_snapshots() {
        let mut scene = Scene::new(1);
        let mut readers = vec![scene.begin()];
        for round in 0..5 {
            let newest = (0..2000).map(|_| scene.commit([0])).last().unwrap();
            assert_eq!(scene.seen(0, newest), newest);
            for &(_, snapshot) in &readers {
                assert_eq!(scene.seen(0, snapshot), snapshot);
            }
            let (ids, _) = scene.transactions.held();
            assert!(ids <= RECENT + readers.len(), "round {round}: {ids} ids");
            readers.push(scene.begin());
        }
        scene.transactions.look_after();
        // When the snapshots between the first and the last end, the versions that only they saw
        // are merged.
        for (slot, _) in readers.drain(1..5) {
            scene.transactions.snapshots.release(slot);
        }
        scene.transactions.look_after();
        assert!(scene.transactions.held().0 <= RECENT + 2);
        for &(_, snapshot) in &readers {
            assert_eq!(scene.seen(0, snapshot), snapshot);
        }
    }

    #[test]
    fn small_change_after_an_old_snapshot_takes_little_memory() {
        let mut scene = Scene::new(100_000);
        let _reader = scene.begin();
        for count in [20_000, 80_000] {
            let start = scene.records.iter().position(|(version, _)| *version == 0).unwrap();
            for record in start..start + count {
                scene.commit([record]);
            }
            let (ids, bytes) = scene.transactions.held();
            assert_eq!(ids, start + count);
            assert!(bytes / ids <= 120, "{} bytes for each of {ids}", bytes / ids);
        }
        assert!((0..100_000).all(|record| scene.seen(record, 0) == 0));
    }

    #[test]
    fn end_of_an_old_snapshot_costs_bounded_steps() {
        let mut scene = Scene::new(10_000);
        let (slot, _) = scene.begin();
        for record in 0..10_000 {
            scene.commit([record]);
        }
        assert_eq!((scene.horizon(), scene.transactions.held().0), (1, 10_000));
        scene.transactions.snapshots.release(slot);
        for end in 1..=10 {
            scene.commit([0]);
            let passed = scene.horizon() - 1;
            assert!(passed > 0 && passed <= end * 64, "{passed} ids after {end} commits");
        }
        scene.transactions.look_after();
        assert_eq!(scene.transactions.held(), (0, 0));
        assert_eq!(scene.horizon(), 10_011);
    }

    #[test]
    fn merge_visits_each_entry_a_bounded_number_of_times() {
        let mut scene = Scene::new(100);
        let _reader = scene.begin();
        for n in 0..20_000 {
            scene.commit([n % 100]);
        }
        let visited = scene.transactions.collector.lock().visited;
        assert!(visited <= 3 * 20_000, "{visited} entries");
        // No snapshot has ended and no entry was added: a round has nothing to do.
        scene.transactions.look_after();
        let after_one = scene.transactions.collector.lock().visited;
        scene.transactions.look_after();
        assert_eq!(scene.transactions.collector.lock().visited, after_one);
    }

    #[test]
    fn merge_of_all_entries_runs_in_rounds() {
        let count = 2 * ENTRIES_PER_ROUND + ENTRIES_PER_ROUND / 2;
        let mut scene = Scene::new(count);
        let _reader = scene.begin();
        for record in 0..count {
            scene.commit([record]);
        }
        let mut visited = scene.transactions.collector.lock().visited;
        for round in 0..4 {
            scene.transactions.look_after();
            let now = scene.transactions.collector.lock().visited;
            assert!(now - visited <= ENTRIES_PER_ROUND, "round {round}: {}", now - visited);
            assert_eq!(now > visited, round < 3, "round {round}");
            visited = now;
        }
    }

    #[test]
    fn large_transaction_is_merged_record_by_record() {
        let count = 2 * super::super::ENTRIES_PER_ID + 1000;
        let mut scene = Scene::new(count);
        let (slot, old) = scene.begin();
        let large = scene.commit(0..count);
        let (_, middle) = scene.begin();
        let second = scene.commit(0..count);
        for _ in 0..RECENT {
            scene.commit([0]);
        }
        scene.transactions.look_after();
        let seen = |scene: &Scene, snapshot, expected| {
            (0..count).step_by(97).all(|record| scene.seen(record, snapshot) == expected)
        };
        assert!(seen(&scene, old, 0) && seen(&scene, middle, large));
        assert_eq!(scene.seen(1, second), second);
        let (_, before) = scene.transactions.held();
        scene.transactions.snapshots.release(slot);
        // Each id of the large transactions is more than one round's work.
        (0..20).for_each(|_| scene.transactions.look_after());
        let (_, after) = scene.transactions.held();
        assert!(after <= before * 6 / 10, "{before} bytes, then {after}");
        assert!(seen(&scene, middle, large));
        // Single changes of the records then merge the large transaction's entries one at a time.
        for record in (0..count).step_by(2) {
            scene.commit([record]);
        }
        scene.transactions.look_after();
        assert!((0..count).step_by(89).all(|record| scene.seen(record, middle) == large));
    }

    #[test]
    fn open_transaction_does_not_keep_versions_of_others() {
        let mut scene = Scene::new(2);
        let open = scene.transactions.begin_writer(0);
        scene.push(&open, 1, 7);
        let (_, snapshot) = scene.begin();
        for _ in 0..5000 {
            scene.commit([0]);
        }
        assert!(scene.transactions.held().0 <= RECENT + 2);
        assert_eq!(scene.transactions.active().len(), 1);
        assert_eq!((scene.seen(0, snapshot), scene.seen(1, snapshot)), (0, 0));
        assert_eq!(scene.transactions.active()[&1].1, 0);
        let timestamp = scene.end(open);
        assert_eq!(scene.seen(1, snapshot), 0);
        assert_eq!(scene.seen(1, timestamp), 7);
        scene.transactions.look_after();
        assert_eq!(scene.seen(1, snapshot), 0);
        assert!(scene.transactions.active().is_empty());
        assert_eq!(writer_of(version_word(1, 0)), 1);
    }

    #[test]
    fn movable_snapshot_keeps_later_versions() {
        let mut scene = Scene::new(1);
        let (slot, first) = scene.begin();
        scene.transactions.snapshots.keep_newer(slot);
        let timestamps: Vec<Timestamp> = (0..300).map(|_| scene.commit([0])).collect();
        scene.transactions.look_after();
        for &timestamp in timestamps.iter().chain([&first]) {
            assert_eq!(scene.seen(0, timestamp), timestamp);
        }
    }

    /// Runs `interrupt` before the reading thread takes its `nth` lock, and returns the value that
    /// `snapshot` sees of record 0.
    #[cfg(feature = "simulation")]
    fn seen_while(
        scene: &Scene,
        snapshot: Timestamp,
        nth: usize,
        interrupt: impl Fn() + 'static,
    ) -> u64 {
        use crate::failpoints::{Probe, observe};
        let locks = std::cell::Cell::new(0);
        observe(Some(std::rc::Rc::new(move |probe| {
            if probe == Probe::Between {
                locks.set(locks.get() + 1);
                if locks.get() == nth {
                    interrupt();
                }
            }
        })));
        let seen = scene.seen(0, snapshot);
        observe(None);
        seen
    }

    #[cfg(feature = "simulation")]
    #[test]
    fn reader_sees_its_version_while_newer_ones_merge() {
        for nth in 1..8 {
            let mut scene = Scene::new(2);
            let base = scene.commit([0]);
            let (_, old) = scene.begin();
            scene.commit([0]);
            let (between, _) = scene.begin();
            scene.commit([0]);
            (0..=RECENT).for_each(|_| assert!(scene.commit([1]) > 0));
            scene.transactions.look_after();
            let scene = std::rc::Rc::new(scene);
            let other = scene.clone();
            let seen = seen_while(&scene, old, nth, move || {
                other.transactions.snapshots.release(between);
                (0..3).for_each(|_| other.transactions.look_after());
            });
            assert_eq!(seen, base, "interrupted at lock {nth}");
        }
    }

    #[cfg(feature = "simulation")]
    #[test]
    fn reader_sees_its_version_during_a_commit() {
        for nth in 1..8 {
            let mut scene = Scene::new(2 + RECENT);
            let base = scene.commit([0]);
            let (_, old) = scene.begin();
            scene.commit([0]);
            (0..=RECENT).for_each(|_| assert!(scene.commit([1]) > 0));
            scene.transactions.look_after();
            let writer = scene.transactions.begin_writer(0);
            scene.push(&writer, 0, u64::MAX);
            let later: Vec<_> = (0..=RECENT)
                .map(|record| {
                    let writer = scene.transactions.begin_writer(0);
                    scene.push(&writer, 1 + record, 1);
                    writer
                })
                .collect();
            let writers = std::cell::RefCell::new(Some((writer, later)));
            let scene = std::rc::Rc::new(scene);
            let other = scene.clone();
            let seen = seen_while(&scene, old, nth, move || {
                if let Some((writer, later)) = writers.take() {
                    other.end(writer);
                    later.into_iter().for_each(|writer| assert!(other.end(writer) > 0));
                    (0..3).for_each(|_| other.transactions.look_after());
                }
            });
            assert_eq!(seen, base, "interrupted at lock {nth}");
        }
    }
}
