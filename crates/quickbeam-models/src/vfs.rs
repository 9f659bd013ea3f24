//! The parts of the engine's VFS that the models use.

use std::sync::Arc;
use std::time::Duration;

pub use crate::sync::Event;

/// The engine's error type names this type; no model has an overlay.
pub mod overlay {
    #[derive(Debug, thiserror::Error)]
    #[error("no room")]
    pub struct OverlayFull;
}

/// The parts of the engine's trait that the models use.
pub trait Vfs: Send + Sync + 'static {
    fn now(&self) -> Duration;
    fn yield_now(&self);
    fn event(&self) -> Arc<dyn Event>;
}

/// The VFS of the models, whose time never advances.
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
