//! Futures that are woken and then dropped: after the reason to poll them again has come, and before anybody has.

mod reads;
mod sends;
mod turns;
mod waiting;
