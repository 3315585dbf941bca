//! Pages of lists.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::bounds;
use crate::http::problem::Problem;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// The value for `cursor` that returns the next page; null after the last page.
    pub(crate) next: Option<String>,
}

/// The part of a list that is returned.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// `next` of the page before. Default: the first page.
    pub(crate) cursor: Option<String>,
    /// The largest number of items, 1 to 1000. Default: 50.
    pub(crate) limit: Option<usize>,
}

/// Checks the number of items on a page.
pub(crate) fn check_limit(limit: Option<usize>) -> Result<usize, Problem> {
    match limit {
        None => Ok(bounds::PAGE_DEFAULT),
        Some(limit) if (1..=bounds::PAGE).contains(&limit) => Ok(limit),
        Some(limit) => {
            let detail = format!("the limit is {limit} and may be 1 to {}", bounds::PAGE);
            Err(Problem::invalid("limit", detail, "read the list in pages"))
        }
    }
}
