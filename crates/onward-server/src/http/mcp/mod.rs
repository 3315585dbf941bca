//! The Model Context Protocol: tools by which a program with a language model reads the store and,
//! if that is allowed, changes it.
//!
//! Each tool is one route, so that roles, bounds and audit records are those of the HTTP API. In
//! reading order: `tools` (the table), `tool` (a tool and its arguments), `invoke` (a call becomes
//! a request of a route), `reply` (messages and replies), `message` (JSON-RPC).

mod invoke;
mod message;
mod reply;
mod tool;
mod tools;

pub(crate) use invoke::Caller;
pub(crate) use reply::{PROTOCOLS, reply_to};
