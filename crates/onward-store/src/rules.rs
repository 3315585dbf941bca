//! The rules: plain functions from values to values, without clock, I/O or async. Every store is fed by the same ones.

pub mod attempt;
pub mod duplicate;
pub mod retry;
