//! Futures that are dropped after they were woken and before they are polled again.

mod reads;
mod sends;
mod turns;
mod waiting;
