//! The fair queue, through its public interface.

mod allocations;
mod channel;
mod ends;
mod handles;
mod properties;
mod reader;
mod states;
mod turns;
mod wakes;
