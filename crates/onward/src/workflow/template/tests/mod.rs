//! Tests of the reader as a whole.

mod examples;
mod fields;
mod messages;
mod reading;
mod schema;
