//! Flow control: how many tasks run at once, and which of them give way.

mod control;
mod preemption;

pub use preemption::Preemption;
