//! The engine's locks, events and atomic words, built on loom's.
// Some methods of some types are unused.
#![allow(dead_code)]

use std::time::Duration;

/// Atomic words. Loom treats a sequentially consistent access as an acquiring or releasing one, and
/// implements only sequentially consistent fences. So each such load has a fence before it. A store
/// has none after it: a sequentially consistent store orders later sequentially consistent loads,
/// and no other loads.
pub mod atomic {
    pub use loom::sync::atomic::{Ordering, fence};

    fn before(order: Ordering) {
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
    }

    macro_rules! atomic {
        ($name:ident, $value:ty, $($arithmetic:ident),*) => {
            /// An atomic word.
            #[derive(Debug, Default)]
            pub struct $name(loom::sync::atomic::$name);

            impl $name {
                pub fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                #[track_caller]
                pub fn load(&self, order: Ordering) -> $value {
                    before(order);
                    self.0.load(order)
                }

                #[track_caller]
                pub fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, order);
                }

                #[track_caller]
                pub fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    before(success);
                    self.0.compare_exchange(old, new, success, failure)
                }

                $(
                    #[track_caller]
                    pub fn $arithmetic(&self, value: $value, order: Ordering) -> $value {
                        before(order);
                        self.0.$arithmetic(value, order)
                    }
                )*
            }
        };
    }

    atomic!(AtomicBool, bool, swap);
    atomic!(AtomicU8, u8, fetch_or);
    atomic!(AtomicU32, u32, fetch_add, fetch_sub);
    atomic!(AtomicU64, u64, fetch_add, fetch_sub, fetch_or, fetch_and, fetch_max, fetch_min);
    atomic!(AtomicUsize, usize, fetch_add, fetch_sub, fetch_max);
}

/// Locks that are never poisoned.
pub mod locks {
    pub use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// A lock with one holder at a time.
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }

        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap()
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Mutex::new(T::default())
        }
    }

    /// A lock for one writer or many readers.
    pub struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }

    impl<T: Default> Default for RwLock<T> {
        fn default() -> Self {
            RwLock(loom::sync::RwLock::new(T::default()))
        }
    }
}

/// Parking. Deadlines never expire.
pub mod parking {
    use std::time::Duration;

    pub use loom::thread::{Thread, current, park};

    #[derive(Clone, Copy)]
    pub struct Deadline;

    impl Deadline {
        pub fn after(_: Duration) -> Option<Deadline> {
            Some(Deadline)
        }

        pub fn park(self) -> bool {
            park();
            true
        }
    }
}

/// Every thread uses the same shard, so that threads contend.
pub mod shard {
    pub fn thread_shard() -> usize {
        0
    }

    pub fn set(_: usize) {}

    pub fn owner() -> u64 {
        0
    }
}

/// See the engine's trait of that name.
pub trait Event: Send + Sync {
    fn generation(&self) -> u64;
    fn wait(&self, seen: u64, timeout: Option<Duration>);
    fn notify(&self);
}
