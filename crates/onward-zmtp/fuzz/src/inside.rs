//! The internals of a connection, which its interface does not show: the input, and the runs that
//! the sockets take from it.
//!
//! The module includes the protocol's source files a second time, because a run is reachable only
//! through a socket with a stream and a runtime.

#[path = "../../src/protocol/error.rs"]
mod error;
#[path = "../../src/protocol/wire/mod.rs"]
mod wire;

mod bounds {
    pub(crate) use onward_zmtp::protocol::bounds::*;
}

mod limits {
    pub(crate) use onward_zmtp::protocol::Limits;
}

mod message {
    pub(crate) use onward_zmtp::protocol::Message;
}

pub(crate) use error::Error;
pub(crate) use wire::frame::SHORT_BODY;
pub(crate) use wire::input::{Frame, FrameLimits, Input};
pub(crate) use wire::message_run::MessageRun;
