//! Plans: the sizes, options, work and faults that a seed stands for. A run draws nothing that a
//! plan could contain, so that a plan can be reduced ([`crate::shrink`]).

use quickbeam::{AccessMethod, Durability, Isolation, Options, UndoPolicy};
use std::time::Duration;

use crate::vfs::disk::{Loss, Medium};
use crate::vfs::faults::{CallKind, Cut, Fault, Full, Phase, Restart, Target};
use quickbeam_testing::Random;

/// How a round ends without a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// The environment is closed.
    Close,
    /// The machine stops while idle.
    Cut,
}

/// One opening of the environment, and the faults until the next.
#[derive(Clone, Debug)]
pub struct Round {
    /// Cuts of opening attempts before the successful one.
    pub opening_cuts: Vec<(u32, Restart)>,
    /// Calls that fail during the opening.
    pub opening_faults: Vec<Fault>,
    /// The cut during the work.
    pub cut: Option<Cut>,
    /// Calls that fail during the work.
    pub faults: Vec<Fault>,
    /// A period with a full device.
    pub full: Option<Full>,
    /// The kind of restart.
    pub restart: Restart,
    /// The end without a cut.
    pub end: RoundEnd,
}

/// Everything about a run except the schedule.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all random choices during the run.
    pub seed: u64,
    /// Run a data store instead of an environment.
    pub store: bool,
    /// Number of threads that run transactions.
    pub clients: usize,
    /// Transactions of each client in a round.
    pub transactions: usize,
    /// Maximum number of operations in a transaction.
    pub operations: usize,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Number of different keys.
    pub keys: usize,
    /// Number of prefixes that the keys have, so that leaves differ in what they truncate; 0: all
    /// keys begin with the same bytes.
    pub prefixes: usize,
    /// Maximum value lengths, one of which is drawn for each value.
    pub lengths: Vec<usize>,
    /// Number of initial records.
    pub preload: usize,
    /// Every other database is a hash database.
    pub hashed: bool,
    /// Hash databases hash a bucket prefix of each key.
    pub grouped: bool,
    /// Some records are updated in one call.
    pub modifies: bool,
    /// Percentage of operations that create, drop, empty or rename databases.
    pub catalog: usize,
    /// Most work is in databases that are created and dropped, with long values and many
    /// checkpoints.
    pub churn: bool,
    /// Percentage of transactions with their own durability.
    pub mixed: usize,
    /// Isolation levels to draw from.
    pub isolations: Vec<Isolation>,
    /// Rounds without a cut close the environment at once, even after faults, so that no other call
    /// reports them.
    pub hasty: bool,
    /// Some checkpoints of clients are compactions, and the environment may compact itself in the
    /// background.
    pub compacts: bool,
    /// Percentage of cuts after which the newest root is damaged.
    pub lost_roots: usize,
    /// The properties of the medium.
    pub medium: Medium,
    /// A bit flips at the end.
    pub rot: bool,
    /// The options of the environment.
    pub options: Options,
}

fn draw_fault(random: &mut Random, reach: usize) -> Fault {
    let kinds = [
        CallKind::Read,
        CallKind::Write,
        CallKind::Write,
        CallKind::Flush,
        CallKind::Flush,
        CallKind::Flush,
        CallKind::Name,
        CallKind::Open,
        CallKind::Length,
    ];
    Fault {
        kind: random.pick(&kinds),
        target: random.pick(&[Target::Any, Target::Data, Target::Log]),
        after: random.below(reach) as u32,
        times: random.pick(&[1, 1, 1, 2, 5]),
    }
}

fn draw_restart(random: &mut Random) -> Restart {
    if random.chance(20) {
        return Restart::Process;
    }
    let losses = [
        Loss::Any,
        Loss::Any,
        Loss::Any,
        Loss::Whole,
        Loss::Tail,
        Loss::AllButOne,
        Loss::OnlyOne,
        Loss::Everything,
        Loss::Nothing,
    ];
    Restart::Power(random.pick(&losses))
}

fn draw_round(random: &mut Random, first: bool) -> Round {
    let mut opening_cuts = Vec::new();
    while random.chance(30) && opening_cuts.len() < 3 {
        let reach = random.pick(&[4, 12, 40]);
        opening_cuts.push((random.below(reach) as u32, draw_restart(random)));
    }
    let cut = random.chance(75).then(|| {
        let phases =
            [Phase::Commit, Phase::Commit, Phase::Checkpoint, Phase::Checkpoint, Phase::Any];
        let phase = random.pick(&phases);
        let reach = random.pick(&[3, 20, 80]);
        Cut { phase, after: random.below(reach) as u32 }
    });
    let fault = random.chance(25);
    let full = random.chance(12);
    let opening_fault = random.chance(8) && !first;
    Round {
        opening_cuts,
        opening_faults: opening_fault.then(|| draw_fault(random, 15)).into_iter().collect(),
        cut,
        faults: if fault {
            (0..1 + random.below(2)).map(|_| draw_fault(random, 60)).collect()
        } else {
            Vec::new()
        },
        full: full.then(|| Full {
            after: random.below(100) as u32,
            slack: random.pick(&[0, 8 << 10, 64 << 10, 300 << 10]),
            refusals: random.pick(&[1, 3, 10, 30]),
        }),
        restart: draw_restart(random),
        end: random.pick(&[RoundEnd::Close, RoundEnd::Cut]),
    }
}

/// Random streams for features that were added after plans were first drawn.
const HASTY: u64 = 0xc00c;
const LOST_ROOTS: u64 = 0xc01b;
const OLD_SNAPSHOTS: u64 = 0xc0a9;
const COMPACTION: u64 = 0xc03a;
const PREFIXES: u64 = 0xc0b5;
const SPILLED_UNDO: u64 = 0xc0d7;

impl Plan {
    /// Returns the access method of the database of that name.
    #[must_use]
    pub fn method_of(&self, name: &str) -> AccessMethod {
        let is_odd = ["second", "made 1", "made 3"].contains(&name);
        match (self.hashed && is_odd, self.grouped) {
            (true, true) => AccessMethod::HashPrefix,
            (true, false) => AccessMethod::Hash,
            (false, _) => AccessMethod::BTree,
        }
    }

    /// Returns the plan of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Plan {
        let random = &mut Random::part(seed, 0x91a7);
        let page_size = random.pick(&[4096, 4096, 4096, 8192]);
        let pages = random.pick(&[64, 64, 72, 100, 400]);
        let durability = random.pick(&[
            Durability::Sync,
            Durability::Sync,
            Durability::Sync,
            Durability::WriteNoSync,
            Durability::NoSync,
            Durability::InMemory,
        ]);
        let options = Options::new()
            .cache_size(page_size * pages)
            .page_size(page_size)
            .log_buffer(random.pick(&[64 << 10, 256 << 10]))
            .log_segment_size(256 << 10)
            .durability(durability)
            .lock_timeout(Duration::from_millis(random.pick(&[2, 20, 200])))
            .checkpoint_bytes(random.pick(&[16 << 10, 64 << 10, 256 << 10, 1 << 20]))
            .checkpoint_interval(Duration::from_millis(random.pick(&[5, 50, 1000])))
            .log_write_interval(Duration::from_millis(random.pick(&[1, 20, 100])));
        let isolations = random.pick(&[
            vec![Isolation::Serializable],
            vec![Isolation::Serializable, Isolation::Snapshot],
            vec![Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted],
            vec![Isolation::Snapshot],
            vec![Isolation::ReadCommitted, Isolation::Serializable],
        ]);
        let rounds = 2 + random.below(3);
        let mut plan = Plan {
            seed,
            store: random.chance(8),
            clients: random.pick(&[1, 2, 3, 4, 6]),
            transactions: random.pick(&[5, 12, 20]),
            operations: random.pick(&[3, 6, 12]),
            rounds: (0..rounds).map(|round| draw_round(random, round == 0)).collect(),
            keys: random.pick(&[4, 20, 100, 400]),
            prefixes: 0,
            lengths: random.pick(&[
                vec![30],
                vec![30, 300, 900],
                vec![30, 300, 900, 6000],
                vec![900, 3000, 30_000],
            ]),
            preload: random.pick(&[0, 0, 60, 300]),
            catalog: random.pick(&[0, 0, 5, 20]),
            churn: false,
            mixed: if durability == Durability::InMemory { 0 } else { random.pick(&[0, 30]) },
            isolations,
            medium: Medium {
                grain: random.pick(&[512, 512, 4096]),
                strict: random.chance(60),
                write_through: random.chance(60),
                mapped: Random::part(seed, 0x3a99).chance(70),
            },
            rot: random.chance(8),
            hashed: random.chance(50),
            grouped: Random::part(seed, 0x6a0f).chance(40),
            modifies: Random::part(seed, 0x30d1).chance(50),
            hasty: Random::part(seed, HASTY).chance(12),
            lost_roots: 0,
            compacts: Random::part(seed, COMPACTION).chance(30),
            options,
        };
        if plan.compacts && Random::part(seed, COMPACTION + 1).chance(50) {
            plan.options.compaction_rate = Some(64 << 20);
        }
        if Random::part(seed, PREFIXES).chance(20) {
            plan.for_prefixes();
        }
        if Random::part(seed, OLD_SNAPSHOTS).chance(15) {
            plan.limit_old_snapshots();
        }
        let random = &mut Random::part(seed, SPILLED_UNDO);
        if random.chance(40) {
            plan.options.undo_memory = random.pick(&[0, 500, 5000]);
        }
        if plan.store {
            plan.for_store()
        } else if durability != Durability::InMemory && Random::part(seed, LOST_ROOTS).chance(12) {
            plan.for_lost_roots()
        } else if Random::part(seed, 0xc4a2).chance(12) {
            plan.for_churn()
        } else {
            plan
        }
    }

    /// Changes the plan to small records of many keys with several prefixes. The longer prefix that
    /// the keys of a leaf have in common, the shorter its records are.
    fn for_prefixes(&mut self) {
        let random = &mut Random::part(self.seed, PREFIXES + 1);
        self.prefixes = 2 + random.below(4);
        self.keys = 2000;
        self.lengths = vec![random.pick(&[8, 30])];
        self.preload = random.pick(&[300, 1000]);
    }

    /// Limits old snapshots, so that they expire during transactions or delay writers.
    fn limit_old_snapshots(&mut self) {
        let random = &mut Random::part(self.seed, OLD_SNAPSHOTS + 1);
        if random.chance(50) {
            let age = Duration::from_micros(random.pick(&[50, 500, 5000]));
            self.options.reader_max_age = Some(age);
        }
        if random.chance(70) {
            self.options.undo_limit = Some(random.pick(&[0, 2000, 20_000]));
            let policies =
                [UndoPolicy::ExpireReaders, UndoPolicy::ExpireReaders, UndoPolicy::DelayWriters];
            self.options.undo_policy = random.pick(&policies);
        }
    }

    /// Changes the plan to drop and free trees with overflow chains beside unfinished transactions,
    /// checkpoints and evictions.
    fn for_churn(mut self) -> Plan {
        let random = &mut Random::part(self.seed, 0xc4a3);
        self.churn = true;
        self.catalog = 20;
        self.clients = self.clients.max(4);
        self.operations = 20;
        self.keys = random.pick(&[20, 100]);
        self.lengths = random.pick(&[vec![300, 6000], vec![900, 3000, 30_000]]);
        self.isolations = random.pick(&[
            vec![Isolation::ReadCommitted],
            vec![Isolation::ReadCommitted, Isolation::Snapshot],
            vec![Isolation::ReadCommitted, Isolation::Serializable],
        ]);
        self.options.cache_size = self.options.page_size * 64;
        self.options.checkpoint_interval = Duration::from_millis(random.pick(&[5, 20]));
        self
    }

    /// Changes the plan to lose the newest root after crashes beside large transactions. These
    /// write fragments to the log, and checkpoints are rare, so that the previous root and the log
    /// after it are complete.
    fn for_lost_roots(mut self) -> Plan {
        let random = &mut Random::part(self.seed, LOST_ROOTS + 1);
        self.lost_roots = 70;
        self.lengths = vec![30_000];
        self.operations = 30;
        self.options.log_buffer = 64 << 10;
        self.options.cache_size = self.options.page_size * 2000;
        self.options.log_segment_size = 4 << 20;
        self.options.checkpoint_bytes = 8 << 20;
        self.options.checkpoint_interval = Duration::from_secs(10);
        self.clients = self.clients.max(3);
        self.preload = 0;
        for (number, round) in self.rounds.iter_mut().enumerate() {
            // A later opening reuses the transaction numbers of an early crash.
            let reach = if number == 0 { 20 } else { 300 };
            let (phase, after) = (Phase::Commit, random.below(reach) as u32);
            round.cut = Some(Cut { phase, after });
            if random.chance(80) {
                round.restart = Restart::Process;
            }
        }
        self
    }

    /// Changes the plan for a data store: more work in less memory, because a single owner
    /// otherwise rarely accesses the disk, and faults in most rounds.
    fn for_store(mut self) -> Plan {
        let random = &mut Random::part(self.seed, 0x5702);
        self.options.cache_size = self.options.page_size * 64;
        self.keys = self.keys.max(100);
        self.transactions *= 4;
        self.lengths = random.pick(&[vec![300, 900, 6000], vec![900, 3000, 30_000]]);
        for round in &mut self.rounds {
            if random.chance(60) {
                round.faults.extend((0..1 + random.below(3)).map(|_| draw_fault(random, 60)));
            }
        }
        self
    }
}
