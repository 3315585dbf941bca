//! `onward submit`

mod arguments;
mod command;
mod lines;

pub(crate) use arguments::{Arguments, retry_policy};
pub(crate) use command::{read_payload, run};
