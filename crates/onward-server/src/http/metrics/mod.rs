//! Metrics of the store and the server, in the text format of Prometheus.

mod collect;
mod requests;
mod table;
mod text;

pub(crate) use collect::metrics_text;
pub(crate) use requests::RequestCounts;
pub use table::{METRICS, Metric};
