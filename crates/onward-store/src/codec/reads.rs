//! Decoding of reads.

use bytes::Bytes;

use super::payload_codec::{PayloadCodec, replace};
use crate::api::document::DocumentRecord;
use crate::api::error::{Error, Result};
use crate::api::orchestration::{HistoryChunk, InstanceRecord, Message, MessageBody};
use crate::api::read::ReadReply;
use crate::api::result::TaskResult;
use crate::api::schedule::ScheduleRecord;
use crate::api::task::TaskRecord;

/// Decodes every payload of a reply.
pub(super) fn decode(codec: &dyn PayloadCodec, reply: &mut ReadReply) -> Result<()> {
    match reply {
        ReadReply::Task(found) | ReadReply::Peek(found) => found.iter_mut().try_for_each(|it| task(codec, it)),
        ReadReply::Tasks(page) => page.tasks.iter_mut().try_for_each(|it| task(codec, it)),
        ReadReply::Schedules(found) => found.iter_mut().try_for_each(|record| schedule(codec, record)),
        ReadReply::Instance(found) => found.iter_mut().try_for_each(|record| instance(codec, record)),
        ReadReply::InstanceHistory(found) => found.iter_mut().try_for_each(|it| chunk(codec, it)),
        ReadReply::TaskOutput(found) => {
            found.iter_mut().flat_map(|it| &mut it.pieces).try_for_each(|piece| one(codec, &mut piece.bytes))
        }
        ReadReply::Document(found) => found.iter_mut().try_for_each(|it| document(codec, it)),
        ReadReply::Documents(page) => page.documents.iter_mut().try_for_each(|it| document(codec, it)),
        // These replies have no payload. The match has no wildcard, so a new reply must be added
        // here or above.
        ReadReply::Why(_)
        | ReadReply::Queues(_)
        | ReadReply::QueueMode(_)
        | ReadReply::Statistics(_)
        | ReadReply::Sessions(_)
        | ReadReply::Pauses(_)
        | ReadReply::Limits(_)
        | ReadReply::PendingBatches(_)
        | ReadReply::Events(_)
        | ReadReply::TaskIds(_)
        | ReadReply::Count(_)
        | ReadReply::TagValues(_)
        | ReadReply::TagKeys(_)
        | ReadReply::History(_) => Ok(()),
    }
}

pub(super) fn one(codec: &dyn PayloadCodec, payload: &mut Bytes) -> Result<()> {
    let failed = |error: Error| {
        Error::corrupt(format!("a payload cannot be decoded: {error}; was it written with another codec or key?"))
    };
    replace(payload, |payload| codec.decode(payload).map_err(failed))
}

pub(super) fn some(codec: &dyn PayloadCodec, payload: &mut Option<Bytes>) -> Result<()> {
    payload.as_mut().map_or(Ok(()), |payload| one(codec, payload))
}

fn task(codec: &dyn PayloadCodec, record: &mut TaskRecord) -> Result<()> {
    some(codec, &mut record.payload)?;
    match &mut record.result {
        TaskResult::Value(result) => one(codec, result),
        TaskResult::NotRead | TaskResult::None => Ok(()),
    }
}

fn schedule(codec: &dyn PayloadCodec, record: &mut ScheduleRecord) -> Result<()> {
    one(codec, &mut record.schedule.task.payload)
}

fn instance(codec: &dyn PayloadCodec, record: &mut InstanceRecord) -> Result<()> {
    some(codec, &mut record.status)?;
    record.values.values_mut().try_for_each(|value| one(codec, value))
}

fn document(codec: &dyn PayloadCodec, record: &mut DocumentRecord) -> Result<()> {
    some(codec, &mut record.content)
}

fn chunk(codec: &dyn PayloadCodec, chunk: &mut HistoryChunk) -> Result<()> {
    one(codec, &mut chunk.chunk)
}

pub(super) fn message(codec: &dyn PayloadCodec, message: &mut Message) -> Result<()> {
    match &mut message.body {
        MessageBody::Ended { result, .. } => some(codec, result),
        MessageBody::Signal { payload, .. } => one(codec, payload),
        MessageBody::NotStarted { .. } | MessageBody::Cancel => Ok(()),
    }
}
