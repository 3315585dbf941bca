//! `onward top`: the live activity of a store on a terminal.
//!
//! [`Model`](model::Model) receives readings and keys and depends on neither terminal nor store.
//! [`draw`] draws it. [`run`] waits for hints, keys and ticks, and carries out what the model
//! requests.

mod draw;
mod group;
mod keys;
mod model;
mod overlay;
mod pane;
mod rates;
mod reading;
mod run;

#[cfg(test)]
mod tests;

pub(crate) use run::{Arguments, run};
