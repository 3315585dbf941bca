//! Counts of requests.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

/// The classes of status, in the order of the counts.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The number of requests by class of status, since the server was started.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts([AtomicU64; CLASSES.len()]);

impl RequestCounts {
    pub(crate) fn count(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.0.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the classes and their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLASSES.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
