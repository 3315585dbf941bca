//! The HTTP API under `/v1`.
//!
//! A [`Server`] has an engine that submits and reads and never runs tasks. [`Server::router`] makes
//! the router from one table of routes, from which the OpenAPI document and the tests of access
//! are made as well. [`Listener`] serves a router on a port with bounds for connections.
//!
//! In reading order: the table of `routes/`, the path of a request in `pipeline`, `access/` (keys
//! and roles), `change/` (records in the commit of a change), `problem/` (errors), `live/`
//! (event streams), `page/` (the web page).

mod access;
pub mod bounds;
mod change;
mod listen;
mod live;
mod metrics;
mod page;
mod pipeline;
mod problem;
mod request;
mod routes;
mod server;
mod wire;
mod work;

pub use access::{KeyRecord, KeyState, Keys, NewKey, Role};
pub use listen::{Listener, check_address};
pub use metrics::{METRICS, Metric};
pub use problem::Code;
pub use routes::{RouteInfo, openapi_json, routes};
pub use server::{Server, ServerOptions};
