//! Payloads from the command line, a file or stdin.

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use onward_store::bounds;

use crate::exit_code::wrong_usage;
use crate::input;

/// Returns a payload from the file that `flag` names, from stdin (`-`), or as the user typed it.
pub(crate) fn read_payload(flag: &str, file: Option<&Path>, typed: Option<&str>) -> anyhow::Result<Bytes> {
    match (file, typed) {
        (Some(path), _) => read_whole(&format!("{flag} {}", path.display()), input::open(flag, Some(path))?),
        (None, Some("-")) => read_whole("stdin", input::open(flag, None)?),
        (None, Some(text)) => Ok(text.to_owned().into()),
        (None, None) => Ok(Bytes::new()),
    }
}

/// Reads a payload from `source`, which names the input as the user typed it.
fn read_whole(source: &str, input: Box<dyn Read + Send>) -> anyhow::Result<Bytes> {
    let mut payload = Vec::new();
    let bounded = u64::try_from(bounds::PAYLOAD_BYTES).unwrap_or(u64::MAX);
    input.take(bounded.saturating_add(1)).read_to_end(&mut payload).with_context(|| source.to_owned())?;
    if payload.len() > bounds::PAYLOAD_BYTES {
        let limit = bounds::PAYLOAD_BYTES;
        return Err(wrong_usage(format!(
            "{source}: the payload is larger than {limit} bytes; keep the data in a file and submit its name"
        )));
    }
    Ok(payload.into())
}
