//! Live events: pages that streams share, and the streams.

mod changes;
mod feed;
mod filter;
mod stream;

pub(crate) use changes::change_stream;
pub(crate) use feed::EventFeed;
pub(crate) use filter::EventFilter;
pub(crate) use stream::{event_stream, read_page};
