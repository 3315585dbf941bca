//! Requests to other servers: the receivers of webhooks, and the issuer of tokens.

mod fetch;
mod target;
mod tls;

pub(crate) use fetch::{Outgoing, fetch};
pub(crate) use target::Target;
pub(crate) use tls::connect_tls;
