//! The engine's locks, whose way of waiting a simulation can replace.
//!
//! Above: every module of the engine. Below: parking_lot. In a simulation the engine's threads run
//! one at a time: a thread runs until it yields, and a lock's holder may yield in the middle of a
//! file operation. A thread that parked then would never be woken. So a simulated thread sets how
//! it yields ([`take_turns`]), and waiting for a held lock yields until the lock is free.
//!
//! A free lock costs what parking_lot's costs: the thread's way of waiting is read only if the lock
//! is held.
// The lint that forbids other locks refers to this module.
#![allow(clippy::disallowed_types)]

use std::cell::RefCell;
use std::rc::Rc;

use crate::failpoints::{Probe, probe};
use parking_lot as real;
pub use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

thread_local! {
    static GIVE_WAY: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// Sets how the calling thread waits for locks: it calls `give_way` until the lock is free, or
/// parks if `give_way` is `None`.
pub fn take_turns(give_way: Option<Rc<dyn Fn()>>) {
    GIVE_WAY.with(|own| *own.borrow_mut() = give_way);
}

/// Repeats `attempt` until it succeeds, yielding in between. Returns `None` if the calling thread
/// waits by parking.
#[cold]
fn in_turns<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    let give_way = GIVE_WAY.with(|own| own.borrow().clone())?;
    loop {
        give_way();
        if let Some(taken) = attempt() {
            return Some(taken);
        }
    }
}

/// A lock with one holder at a time.
#[derive(Default)]
pub struct Mutex<T>(real::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates a free lock around `value`.
    pub const fn new(value: T) -> Self {
        Mutex(real::Mutex::new(value))
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        probe(Probe::Between);
        match self.0.try_lock() {
            Some(guard) => guard,
            None => in_turns(|| self.0.try_lock()).unwrap_or_else(|| self.0.lock()),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock()
    }

    /// Returns the value; the caller owns the lock exclusively.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A lock for one writer or many readers.
#[derive(Default)]
pub struct RwLock<T>(real::RwLock<T>);

impl<T> RwLock<T> {
    /// Creates a free lock around `value`.
    pub const fn new(value: T) -> Self {
        RwLock(real::RwLock::new(value))
    }

    /// Waits for a shared lock.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        probe(Probe::Between);
        match self.0.try_read() {
            Some(guard) => guard,
            None => in_turns(|| self.0.try_read()).unwrap_or_else(|| self.0.read()),
        }
    }

    /// Waits for the exclusive lock.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        probe(Probe::Between);
        match self.0.try_write() {
            Some(guard) => guard,
            None => in_turns(|| self.0.try_write()).unwrap_or_else(|| self.0.write()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// The holder of the locks continues only after the waiting thread has yielded three times.
    #[test]
    fn held_lock_yields_until_it_is_free() {
        let locks = Arc::new((Mutex::new(0), RwLock::new(0)));
        let turns = Arc::new(AtomicU32::new(0));
        let (held, seen) = (locks.clone(), turns.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let holder = std::thread::spawn(move || {
            let (mut first, mut second) = (held.0.lock(), held.1.write());
            ready.send(()).unwrap();
            while seen.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            (*first, *second) = (1, 1);
        });
        is_ready.recv().unwrap();
        let counted = turns.clone();
        take_turns(Some(Rc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        })));
        assert_eq!((*locks.0.lock(), *locks.1.read()), (1, 1));
        take_turns(None);
        assert!(turns.load(Ordering::SeqCst) >= 3);
        holder.join().unwrap();
    }
}
