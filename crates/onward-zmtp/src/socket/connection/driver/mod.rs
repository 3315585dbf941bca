//! The driver of an established connection.

mod reading;
mod shared_driver;
mod turn;
mod uncertain;
mod writing;

pub(super) use shared_driver::{DirectWriter, SharedDriver};
pub(super) use turn::Driver;
