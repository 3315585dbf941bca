//! The tests of `onward-zmtp` from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod zmtp;
