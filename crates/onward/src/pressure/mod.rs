//! How loaded the machine is, and what is held back for it.
//!
//! [`PressureSource`]s say how high the pressure is, the [`Throttle`] how urgent a task must be to
//! start then. The engine samples the sources while tasks run or wait and lets its claims leave
//! what is less urgent: such tasks are not claimed, so they hold up nothing.

mod bandwidth;
mod gauge;
#[cfg(target_os = "linux")]
mod linux;
mod source;
mod throttle;

pub(crate) use bandwidth::LiveIo;
pub(crate) use gauge::{Gauge, PressureSettings};
pub use gauge::{Pressure, PressureReading};
#[cfg(target_os = "linux")]
pub use linux::StallPressure;
pub use source::{PressureFn, PressureSource};
pub use throttle::Throttle;
