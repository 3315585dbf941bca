//! Problems: the errors of the API, as `application/problem+json`.

mod code;
mod document;
mod from_error;

pub use code::Code;
pub(crate) use document::{Problem, ProblemBody};
