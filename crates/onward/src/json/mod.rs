//! Values as JSON: all that is kept is written by one function, which refuses what could not be
//! read again.

mod encode;
mod finite;

pub(crate) use encode::encode;
