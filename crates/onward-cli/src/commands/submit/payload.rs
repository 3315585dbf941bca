//! Payloads from the command line, a file or stdin.

use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use onward_store::limits;

use crate::exit_code::wrong_usage;
use crate::input;

/// A payload as it was typed, or what a file or stdin (`-`) holds.
pub(crate) fn read_payload(file: Option<&Path>, typed: Option<&str>) -> anyhow::Result<Bytes> {
    match (file, typed) {
        (Some(path), _) => read_whole(input::open(Some(path))?),
        (None, Some("-")) => read_whole(input::open(None)?),
        (None, Some(text)) => Ok(text.to_owned().into()),
        (None, None) => Ok(Bytes::new()),
    }
}

fn read_whole(input: Box<dyn Read + Send>) -> anyhow::Result<Bytes> {
    let mut payload = Vec::new();
    let bounded = u64::try_from(limits::PAYLOAD_BYTES).unwrap_or(u64::MAX);
    input.take(bounded.saturating_add(1)).read_to_end(&mut payload)?;
    if payload.len() > limits::PAYLOAD_BYTES {
        let limit = limits::PAYLOAD_BYTES;
        return Err(wrong_usage(format!(
            "the payload is larger than {limit} bytes; keep the data in a file and submit its name"
        )));
    }
    Ok(payload.into())
}
