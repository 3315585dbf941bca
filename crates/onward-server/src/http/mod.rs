//! The HTTP API under `/v1`.
//!
//! A [`Server`] has an engine that submits and reads and never runs tasks. [`Server::router`] makes
//! the router from one table of routes, from which the OpenAPI document and the tests of access
//! are made as well. [`Listener`] serves a router on a port with bounds for connections.
//!
//! In reading order: the table of `routes/`, the path of a request in `pipeline`, `access/` (keys,
//! accounts and roles), `change/` (records in the commit of a change), `problem/` (errors), `live/`
//! (event streams), `page/` (the web page). `circuit/` protects a store that fails, `webhooks/`
//! sends events, and `hooks/` takes deliveries of other programs.

mod access;
pub mod bounds;
mod change;
mod circuit;
mod hooks;
mod limits;
mod listen;
mod live;
mod mcp;
mod metrics;
mod outgoing;
mod page;
mod pipeline;
mod problem;
mod request;
mod routes;
mod server;
mod webhooks;
mod wire;
mod work;

pub use access::{
    AccountChange, AccountRecord, Accounts, Algorithm, ClaimRole, ClientSecret, IssuerOptions, KeyRecord, KeyState,
    Keys, NewAccount, NewKey, Role, SignInOptions, has_sign_in,
};
pub use change::CommandLineChange;
pub use limits::Limits;
pub use listen::{Listener, Network, Protection, Tls, TlsFiles, check_address};
pub use metrics::{METRICS, Metric};
pub use problem::Code;
pub use routes::{RouteInfo, openapi_json, routes};
pub use server::{Server, ServerOptions};
