//! The values of flags: their syntax, and the errors for wrong ones.

#[cfg(any(feature = "metrics", feature = "serve"))]
mod address;
mod backoff;
mod bytes;
mod duration;
mod jobs;
mod json;
mod kind;
mod priority;
mod queue;
mod rate;
mod row_count;
mod tag;
mod time;

#[cfg(any(feature = "metrics", feature = "serve"))]
pub(crate) use address::parse_address;
pub(crate) use backoff::parse_backoff;
pub(crate) use bytes::{parse_bytes, parse_size};
pub(crate) use duration::{parse_duration, parse_positive_duration};
pub(crate) use jobs::Jobs;
pub(crate) use json::parse_json;
pub(crate) use kind::parse_kind;
pub(crate) use priority::parse_priority;
pub(crate) use queue::{check_queue, parse_queue};
pub(crate) use rate::Rate;
pub(crate) use row_count::parse_row_count;
pub(crate) use tag::{Tag, tags_of};
pub(crate) use time::{coming_time_in, local_zone, parse_coming_time, parse_past_time};
