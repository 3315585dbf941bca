//! Flow control: the number of tasks that run at once, and preemption.

mod control;
mod preemption;

pub use preemption::Preemption;
