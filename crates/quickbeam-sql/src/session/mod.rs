//! Sessions: databases, connections, prepared statements, rows.
//!
//! Above: applications. Below: parser, binder, planner, execution. A [`Connection`] serves one
//! thread: it holds the open transaction, settings, and a cache of prepared statements by text. A
//! [`Statement`] is prepared once and keeps its operators and buffers; it is recompiled when the
//! catalog version differs from the one that it was compiled for.
//!
//! - SESSION-1: a statement that fails leaves nothing of itself. Outside a transaction its own
//!   transaction is aborted; inside one it is undone, and the transaction can go on.
//! - SESSION-2: a plan is used only under the catalog version it was made for, in the transaction
//!   that uses it.

pub(crate) mod advisory;
mod autocommit;
pub(crate) mod copy;
mod definition;
pub(crate) mod executor;
pub(crate) mod named;
pub(crate) mod session_command;
pub(crate) mod settings;
pub(crate) mod transaction;
mod utility;
