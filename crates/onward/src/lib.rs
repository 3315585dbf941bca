//! Runs work that must not get lost.
