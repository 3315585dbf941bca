//! Tests of the reader as a whole.

mod examples;
