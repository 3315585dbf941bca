//! The routes: one table, from which the router, the OpenAPI document and the tests of access are
//! made.

mod accounts;
mod audit;
mod bulk;
mod changes;
mod dead;
mod dead_retry;
mod events;
mod groups;
mod health;
mod hooks;
mod inbox;
mod keys;
mod limits;
mod mcp;
mod metrics;
mod oidc;
mod openapi;
mod orchestrations;
mod overview;
mod queues;
mod route;
mod run_graph;
mod run_path;
mod run_results;
mod runs;
mod schedules;
mod sessions;
mod sign_in;
mod store;
mod store_access;
mod submit;
mod table;
mod task_actions;
mod tasks;
mod templates;
mod webhooks;
mod work;

pub use openapi::openapi_json;
pub use route::RouteInfo;
pub(crate) use route::{Access, Route};
pub(crate) use table::all_routes;
pub use table::routes;
