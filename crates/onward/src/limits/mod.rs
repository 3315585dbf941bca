//! Flow control: how many tasks run at once and how many start in a period, and preemption.
//!
//! [`Engine::set_limit`](crate::Engine::set_limit) sets a limit, and
//! [`EngineBuilder::preemption`](crate::EngineBuilder::preemption) permits preemption.

mod control;
mod preemption;

pub use onward_store::{ConcurrencyLimit, GroupShare, Limit, LimitRecord, LimitScope, Rate, RateLimit, SetLimit};
pub use preemption::Preemption;
