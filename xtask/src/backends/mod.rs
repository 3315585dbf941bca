//! The needs of the tests beyond cargo: stores, servers and programs of other implementations.

mod libzmq;
mod microsocks;
pub(crate) mod postgres;
mod python_zmq;
mod ready;

pub(crate) use ready::{Ready, prepare, prepare_only};
