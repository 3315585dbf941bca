//! The table of the routes of orchestrations.

use super::{control, fork, history, query, tree, update};
use crate::http::routes::route::Route;

pub(in crate::http::routes) fn table() -> Vec<Route> {
    let tables = [control::table(), history::table(), tree::table(), update::table(), query::table(), fork::table()];
    tables.into_iter().flatten().collect()
}
