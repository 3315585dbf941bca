//! Tests of the client's types. `crates/onward-cli` tests it against a server.

#[cfg(test)]
mod openapi;
