//! How a connection begins: sockets, encryption and the start-up packet.

pub(super) mod socket;
pub(super) mod startup;
pub(super) mod tls;
