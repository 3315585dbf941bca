//! Requests, as handlers see them.

mod call;
mod cursor;
mod etag;
mod media;
mod reading;

pub(crate) use call::Call;
pub(crate) use cursor::{decode as decode_cursor, encode as encode_cursor};
pub(crate) use etag::{etag, with_etag};
pub(crate) use media::is_json;
pub(crate) use reading::{read_body, read_json};
