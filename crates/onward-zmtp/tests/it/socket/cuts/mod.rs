//! Connections that are cut under load: where is each message then?
//!
//! `ONWARD_ROUNDS` says how often a connection is cut (default: 48, twelve times all four at once).

mod arrived;
mod load;
mod one_way;
mod publications;
mod questions;
mod wire;
