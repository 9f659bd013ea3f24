//! As much of the engine's VFS as the modelled parts use.

use std::sync::Arc;
use std::time::Duration;

pub use crate::sync::Event;

/// The engine's error type names this one; no model has an overlay.
pub mod overlay {
    #[derive(Debug, thiserror::Error)]
    #[error("no room")]
    pub struct OverlayFull;
}

/// As much of the engine's trait as the modelled parts use.
pub trait Vfs: Send + Sync + 'static {
    fn now(&self) -> Duration;
    fn yield_now(&self);
    fn event(&self) -> Arc<dyn Event>;
}

/// The VFS of the models: time stands still.
pub struct ModelVfs;

impl Vfs for ModelVfs {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn yield_now(&self) {
        loom::thread::yield_now();
    }

    fn event(&self) -> Arc<dyn Event> {
        Arc::new(crate::engine::event::ParkingEvent::default())
    }
}
