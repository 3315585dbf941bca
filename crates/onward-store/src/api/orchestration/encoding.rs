//! The stored form of messages and orchestrations: CBOR with numbered fields. A number is never
//! reused for another field.

#[cfg(feature = "postgres")]
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

#[cfg(feature = "postgres")]
use super::hold::Hold;
#[cfg(feature = "postgres")]
use super::instance::Instance;
use super::message::{Message, MessageBody};
use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;

/// The stored form of a [`MessageBody`]. The numbers of fields and variants are stored: a new field
/// gets the next number, and the number of a removed field is never used again.
#[derive(Debug, Encode, Decode)]
enum StoredBody {
    #[n(1)]
    Ended {
        #[n(0)]
        reference: u64,
        #[n(1)]
        task: i64,
        #[n(2)]
        state: i64,
        #[n(3)]
        result: Option<ByteVec>,
        #[n(4)]
        error: Option<String>,
        #[n(5)]
        attempts: u32,
        #[n(6)]
        omitted: Option<u64>,
    },
    #[n(2)]
    NotStarted {
        #[n(0)]
        reference: u64,
        #[n(1)]
        existing: i64,
    },
    #[n(3)]
    Signal {
        #[n(0)]
        name: String,
        #[n(1)]
        payload: ByteVec,
    },
    #[n(4)]
    Cancel,
}

/// The stored form of a [`Message`].
#[derive(Debug, Encode, Decode)]
struct StoredMessage {
    #[n(0)]
    number: u64,
    #[n(1)]
    at: i64,
    #[n(2)]
    body: StoredBody,
}

impl StoredBody {
    /// Returns the stored form of a body.
    fn of(body: &MessageBody) -> Self {
        match body {
            MessageBody::Ended { reference, task, state, result, error, attempts, omitted } => Self::Ended {
                reference: *reference,
                task: task.0,
                state: state.code(),
                result: result.as_ref().map(|result| result.to_vec().into()),
                error: error.clone(),
                attempts: *attempts,
                omitted: *omitted,
            },
            MessageBody::NotStarted { reference, existing } => {
                Self::NotStarted { reference: *reference, existing: existing.0 }
            }
            MessageBody::Signal { name, payload } => {
                Self::Signal { name: name.to_string(), payload: payload.to_vec().into() }
            }
            MessageBody::Cancel => Self::Cancel,
        }
    }

    /// Returns the body. Fails if a stored number or name is not valid, which only damage causes.
    fn into_body(self) -> Result<MessageBody> {
        let bytes = |bytes: ByteVec| Bytes::from(Vec::from(bytes));
        Ok(match self {
            Self::Ended { reference, task, state, result, error, attempts, omitted } => MessageBody::Ended {
                reference,
                task: TaskId(task),
                state: TaskState::from_code(state).ok_or_else(|| damaged("an unknown state"))?,
                result: result.map(bytes),
                error,
                attempts,
                omitted,
            },
            Self::NotStarted { reference, existing } => {
                MessageBody::NotStarted { reference, existing: TaskId(existing) }
            }
            Self::Signal { name, payload } => MessageBody::Signal { name: Name::new(name)?, payload: bytes(payload) },
            Self::Cancel => MessageBody::Cancel,
        })
    }
}

impl StoredMessage {
    /// Returns the stored form of a message.
    fn of(message: &Message) -> Self {
        Self { number: message.number, at: message.at.as_microseconds(), body: StoredBody::of(&message.body) }
    }

    /// Returns the message.
    fn into_message(self) -> Result<Message> {
        let at = Timestamp::from_microseconds(self.at);
        Ok(Message { number: self.number, at, body: self.body.into_body()? })
    }
}

/// Encodes a message.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn encode_message(message: &Message) -> Result<Vec<u8>> {
    minicbor::to_vec(StoredMessage::of(message)).map_err(|error| unwritable(&error))
}

/// Decodes a message that [`encode_message`] wrote.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn decode_message(bytes: &[u8]) -> Result<Message> {
    let stored: StoredMessage = minicbor::decode(bytes).map_err(damaged)?;
    stored.into_message()
}

#[cfg(feature = "postgres")]
#[derive(Debug, Encode, Decode)]
struct InstanceFields {
    #[n(0)]
    generation: u32,
    #[n(1)]
    length: u64,
    #[n(2)]
    bytes: u64,
    #[n(3)]
    received: u64,
    #[n(4)]
    status: Option<ByteVec>,
    #[n(5)]
    values: BTreeMap<String, ByteVec>,
    #[n(6)]
    taken: u64,
    #[n(7)]
    cancel: u64,
    #[n(8)]
    awaits: Option<Vec<String>>,
    #[n(9)]
    hold: Option<u8>,
    #[n(10)]
    version: Option<u32>,
}

/// Encodes an orchestration without its waiting messages and its history.
#[cfg(feature = "postgres")]
pub(crate) fn encode_instance(instance: &Instance) -> Result<Vec<u8>> {
    let fields = InstanceFields {
        generation: instance.generation,
        length: instance.length,
        bytes: instance.bytes,
        received: instance.received,
        status: instance.status.as_ref().map(|status| status.to_vec().into()),
        values: instance.values.iter().map(|(key, value)| (key.clone(), value.to_vec().into())).collect(),
        taken: instance.taken,
        cancel: instance.cancel,
        awaits: Some(&instance.awaits)
            .filter(|awaits| !awaits.is_empty())
            .map(|awaits| awaits.iter().map(ToString::to_string).collect()),
        hold: Some(instance.hold.code()).filter(|code| *code > 0),
        version: instance.version,
    };
    minicbor::to_vec(fields).map_err(|error| unwritable(&error))
}

/// Decodes an orchestration that [`encode_instance`] wrote.
#[cfg(feature = "postgres")]
pub(crate) fn decode_instance(bytes: &[u8]) -> Result<Instance> {
    let fields: InstanceFields = minicbor::decode(bytes).map_err(damaged)?;
    let whole = |bytes: ByteVec| Bytes::from(Vec::from(bytes));
    Ok(Instance {
        generation: fields.generation,
        length: fields.length,
        bytes: fields.bytes,
        received: fields.received,
        status: fields.status.map(whole),
        values: fields.values.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        taken: fields.taken,
        cancel: fields.cancel,
        awaits: fields.awaits.into_iter().flatten().map(Name::new).collect::<Result<_>>()?,
        hold: Hold::from_code(fields.hold.unwrap_or_default()),
        version: fields.version,
        mailbox: VecDeque::new(),
        chunks: Vec::new(),
    })
}

/// Returns the error of a row that cannot be decoded.
#[cold]
fn damaged(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("what waits for an orchestration cannot be read: {what}; restore a backup"))
}

/// Returns the error of a value that cannot be encoded.
#[cold]
fn unwritable(error: &dyn std::fmt::Display) -> Error {
    Error::io(format!("what waits for an orchestration cannot be written: {error}"))
}
