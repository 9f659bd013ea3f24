//! Reduces a failing plan: fewer rounds, clients, transactions, operations and faults, while it
//! still fails.
//!
//! The result is expressed as changes to the plan of the seed, for `--with`.

use crate::plan::Plan;
use crate::run::run;

/// Returns the plan of `seed` with changes, such as `clients=1,rounds=2,no-faults`. Fails on an
/// unknown change.
pub fn plan_with(seed: u64, changes: &[String]) -> Result<Plan, String> {
    let mut plan = Plan::new(seed);
    for change in changes {
        apply(&mut plan, change)?;
    }
    Ok(plan)
}

fn apply(plan: &mut Plan, change: &str) -> Result<(), String> {
    let (name, value) = change.split_once('=').unwrap_or((change, "0"));
    let number: usize = value.parse().map_err(|_| format!("{change:?} has no number"))?;
    match name {
        "clients" => plan.clients = number,
        "transactions" => plan.transactions = number,
        "operations" => plan.operations = number.max(1),
        "preload" => plan.preload = number,
        "catalog" => plan.catalog = number,
        "mixed" => plan.mixed = number,
        "rounds" => plan.rounds.truncate(number),
        "longest" => {
            let shortest = plan.lengths.iter().copied().min().unwrap_or(0);
            plan.lengths.retain(|&length| length <= number.max(shortest));
        }
        "no-faults" => {
            for round in &mut plan.rounds {
                round.faults.clear();
                round.opening_faults.clear();
            }
        }
        "no-full" => plan.rounds.iter_mut().for_each(|round| round.full = None),
        "no-opening-cuts" => plan.rounds.iter_mut().for_each(|round| round.opening_cuts.clear()),
        "no-cuts" => plan.rounds.iter_mut().for_each(|round| round.cut = None),
        "cut-after" => {
            for cut in plan.rounds.iter_mut().filter_map(|round| round.cut.as_mut()) {
                cut.after = cut.after.min(number as u32);
            }
        }
        "no-rot" => plan.rot = false,
        "no-hash" => plan.hashed = false,
        "no-lost-roots" => plan.lost_roots = 0,
        _ => return Err(format!("{change:?} is no change to a plan")),
    }
    Ok(())
}

/// Returns the changes to try, the largest reductions first.
fn candidates(plan: &Plan) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let without = [
        "no-rot",
        "no-hash",
        "no-full",
        "no-faults",
        "no-opening-cuts",
        "no-cuts",
        "no-lost-roots",
    ];
    all.extend(without.map(String::from));
    let numbers = [
        ("rounds", plan.rounds.len()),
        ("clients", plan.clients),
        ("transactions", plan.transactions),
        ("operations", plan.operations),
        ("preload", plan.preload),
        ("catalog", plan.catalog),
        ("mixed", plan.mixed),
    ];
    for (name, now) in numbers {
        for smaller in [now / 4, now / 2, now.saturating_sub(1)] {
            if smaller < now {
                all.push(format!("{name}={smaller}"));
            }
        }
    }
    for after in [0, 3, 10] {
        all.push(format!("cut-after={after}"));
    }
    all.push("longest=900".into());
    all
}

/// Returns the changes that remain when no further reduction keeps the plan failing. Makes at most
/// `attempts` runs.
#[must_use]
pub fn shrink(seed: u64, from: &[String], attempts: usize) -> Vec<String> {
    let mut kept = from.to_vec();
    let mut left = attempts;
    loop {
        let Ok(plan) = plan_with(seed, &kept) else { return kept };
        let mut found = None;
        for change in candidates(&plan) {
            let name = change.split('=').next().unwrap_or_default();
            if kept.contains(&change) || left == 0 {
                continue;
            }
            let mut tried: Vec<String> = kept
                .iter()
                .filter(|other| other.split('=').next() != Some(name))
                .cloned()
                .collect();
            tried.push(change);
            let Ok(smaller) = plan_with(seed, &tried) else { continue };
            left -= 1;
            if !run(&smaller, false).violations.is_empty() {
                found = Some(tried);
                break;
            }
        }
        match found {
            Some(tried) => kept = tried,
            None => return kept,
        }
    }
}
