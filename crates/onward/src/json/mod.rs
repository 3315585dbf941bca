//! Values as JSON. One function writes every stored value, and rejects a value that could not be
//! read again.

mod encode;
mod finite;

pub(crate) use encode::encode;
