//! Tests of the reader as a whole.

mod environments;
mod examples;
mod fields;
mod hashes;
mod hostile;
mod lists;
mod messages;
mod reading;
mod rules;
mod schema;
