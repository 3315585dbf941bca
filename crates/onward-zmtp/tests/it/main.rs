//! The tests of `onward-zmtp` from outside.

mod zmtp;
