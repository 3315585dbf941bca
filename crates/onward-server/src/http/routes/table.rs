//! The table of all routes.

use super::route::{Route, RouteInfo};
use super::{
    accounts, audit, bulk, changes, dead, events, groups, health, hooks, inbox, keys, limits, mcp, metrics, oidc,
    orchestrations, overview, queues, run_graph, run_path, run_results, runs, schedules, sessions, sign_in, store,
    submit, task_actions, tasks, templates, webhooks, work,
};

/// Returns all routes.
pub(crate) fn all_routes() -> Vec<Route> {
    [
        health::table(),
        metrics::table(),
        mcp::table(),
        sign_in::table(),
        oidc::table(),
        submit::table(),
        tasks::table(),
        task_actions::table(),
        bulk::table(),
        dead::table(),
        queues::table(),
        groups::table(),
        limits::table(),
        schedules::table(),
        templates::table(),
        runs::table(),
        run_graph::table(),
        run_path::table(),
        run_results::table(),
        inbox::table(),
        orchestrations::table(),
        events::table(),
        changes::table(),
        overview::table(),
        webhooks::table(),
        hooks::table(),
        keys::table(),
        accounts::table(),
        sessions::table(),
        audit::table(),
        store::table(),
        work::table(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the method, the path and the role of each route.
#[must_use]
pub fn routes() -> Vec<RouteInfo> {
    all_routes().iter().map(RouteInfo::from).collect()
}
