//! What is inside of a connection and nobody sees from outside: the input, and the runs that the
//! sockets take from it.
//!
//! It is the protocol's own text once more, for there is no way to a run but through a socket with
//! a stream and a runtime.

#[path = "../../src/protocol/error.rs"]
mod error;
#[path = "../../src/protocol/frame.rs"]
mod frame;
#[path = "../../src/protocol/input.rs"]
mod input;
#[path = "../../src/protocol/run.rs"]
mod run;

mod limits {
    pub(crate) use onward_zmtp::protocol::limits::*;
}

mod message {
    pub(crate) use onward_zmtp::protocol::Message;
}

pub(crate) use error::Error;
pub(crate) use frame::SHORT_BODY;
pub(crate) use input::{Frame, FrameLimits, Input};
pub(crate) use run::Run;
