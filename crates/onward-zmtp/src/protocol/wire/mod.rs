//! The encoding of frames, commands and messages, and the buffers of received and unwritten bytes.
//!
//! The fuzz targets include this folder a second time, in another crate. The modules here therefore
//! refer to the rest of the protocol by relative paths, and need only its bounds, errors and
//! messages.

pub(crate) mod assembler;
pub(crate) mod command;
pub(crate) mod frame;
pub(crate) mod input;
#[cfg(feature = "tokio")]
pub(crate) mod message_run;
pub(crate) mod output;
