//! One session of a worker, as a state machine without I/O and clock.
//!
//! [`Session::handle`] takes an [`Input`] (a message, an event of the engine, a moment) and appends
//! [`Output`]s: messages to send, and commands for the engine.

mod beats;
mod ends;
mod held;
mod hello;
mod io;
mod messages;
mod remembered;
mod skipped;
mod state;
#[cfg(test)]
mod tests;
mod time;

pub(super) use hello::STICKY;
pub(super) use io::{EndOutcome, EngineEnd, Input, Offer, Output};
pub(super) use state::{Session, Terms};
