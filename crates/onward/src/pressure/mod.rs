//! The load of the machine, and the tasks that are held back for it.
//!
//! [`PressureSource`]s measure pressure, and the [`Throttle`] sets how urgent a task must be to
//! start under it. The engine samples the sources while tasks run or wait. Its claims leave less
//! urgent tasks in the store, so these occupy no slot.

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
