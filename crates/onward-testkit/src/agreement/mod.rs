//! Stores that agree.
