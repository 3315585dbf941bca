//! For those who write a store.
