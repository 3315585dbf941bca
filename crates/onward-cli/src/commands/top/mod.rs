//! `onward top`: what a store does, live on a terminal.
//!
//! [`Model`](model::Model) is fed with readings and keys and knows neither terminal nor store;
//! [`draw`] draws it; [`run`] waits for hints, keys and seconds, and carries out what the model
//! wishes.

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
