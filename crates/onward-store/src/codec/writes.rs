//! Encoding of writes.

use bytes::Bytes;

use super::payload_codec::{PayloadCodec, replace};
use crate::api::completion::ExternalCompletion;
use crate::api::error::Result;
use crate::api::orchestration::{AfterTurn, AttemptEnd, Turn};
use crate::api::write::Write;

/// Encodes every payload of a write. Names, keys, tags and errors stay readable, because stores
/// search and show them.
pub(super) fn encode(codec: &dyn PayloadCodec, write: &mut Write) -> Result<()> {
    match write {
        Write::Submit(new) => one(codec, &mut new.payload),
        Write::Complete { result, .. }
        | Write::CompleteExternally { completion: ExternalCompletion::Complete { result }, .. } => some(codec, result),
        Write::AwaitChildren { checkpoint, .. } | Write::SaveCheckpoint { checkpoint, .. } => one(codec, checkpoint),
        Write::SetSchedule(set) => one(codec, &mut set.schedule.task.payload),
        Write::AppendOutput { piece, .. } => one(codec, &mut piece.bytes),
        Write::PutDocument(put) => one(codec, &mut put.content),
        Write::Signal(signal) => one(codec, &mut signal.payload),
        Write::Turn(turn) => encode_turn(codec, turn),
        Write::EndWithTurn(write) => {
            if let AttemptEnd::Complete { result } = &mut write.end {
                some(codec, result)?;
            }
            encode_turn(codec, &mut write.turn)
        }
        Write::All(writes) => writes.iter_mut().try_for_each(|write| encode(codec, write)),
        _ => Ok(()),
    }
}

/// Encodes the events, values, submits and results of a turn.
fn encode_turn(codec: &dyn PayloadCodec, turn: &mut Turn) -> Result<()> {
    one(codec, &mut turn.chunk)?;
    some(codec, &mut turn.status)?;
    turn.values.iter_mut().try_for_each(|(_, value)| some(codec, value))?;
    turn.submits.iter_mut().try_for_each(|new| one(codec, &mut new.payload))?;
    match &mut turn.next {
        AfterTurn::Complete { result } => some(codec, result),
        AfterTurn::ContinueAsNew { payload, chunk, .. } => {
            one(codec, payload)?;
            one(codec, chunk)
        }
        AfterTurn::Continue
        | AfterTurn::Park { .. }
        | AfterTurn::Fail { .. }
        | AfterTurn::Dead { .. }
        | AfterTurn::Cancelled { .. } => Ok(()),
    }
}

/// Encodes a payload.
fn one(codec: &dyn PayloadCodec, payload: &mut Bytes) -> Result<()> {
    replace(payload, |payload| codec.encode(payload))
}

/// Encodes a payload that may be missing.
fn some(codec: &dyn PayloadCodec, payload: &mut Option<Bytes>) -> Result<()> {
    payload.as_mut().map_or(Ok(()), |payload| one(codec, payload))
}
