//! Connections that are cut under load: the tests account for each message.
//!
//! `ONWARD_ROUNDS` sets the number of cuts (default: 48, which is twelve times all four
//! connections).

mod arrived;
mod load;
mod one_way;
mod publications;
mod requests;
mod wire;
