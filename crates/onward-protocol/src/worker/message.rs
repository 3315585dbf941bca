//! Any message of a worker.

use bytes::Bytes;

use super::ask::Ask;
use super::beat::Beat;
use super::end::Ends;
use super::hello::{Grant, Hello};
use super::submit::Submit;
use crate::error::Result;
use crate::gateway::ErrorMessage;
use crate::header::{Header, unsupported};

/// A message of a worker, checked against every bound.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerMessage {
    /// The first message.
    Hello(Box<Hello>),
    /// Credit for tasks.
    Grant(Grant),
    /// Ends of attempts.
    End(Ends),
    /// A heartbeat.
    Beat(Beat),
    /// New tasks.
    Submit(Submit),
    /// A read.
    Ask(Ask),
    /// No further tasks.
    Drain,
    /// The last message.
    Bye,
    /// An error of the worker.
    Error(ErrorMessage),
}

impl WorkerMessage {
    /// Reads a message from its frames. The payloads stay in the frames after the first.
    ///
    /// # Errors
    /// Returns the first violation. [`Code::Unsupported`](crate::Code::Unsupported) for an unknown
    /// type leaves the connection usable.
    pub fn read(frames: &[Bytes]) -> Result<Self> {
        let header = Header::read(frames)?;
        let payloads = header.payloads;
        match &*header.kind {
            "hello" => {
                let hello: Box<Hello> = header.fields()?;
                hello.check().map(|()| Self::Hello(hello))
            }
            "grant" => {
                let grant: Grant = header.fields()?;
                grant.check().map(|()| Self::Grant(grant))
            }
            "end" => {
                let ends: Ends = header.fields()?;
                ends.check(payloads).map(|()| Self::End(ends))
            }
            "beat" => {
                let beat: Beat = header.fields()?;
                beat.check(payloads).map(|()| Self::Beat(beat))
            }
            "submit" => {
                let submit: Submit = header.fields()?;
                submit.check(payloads).map(|()| Self::Submit(submit))
            }
            "ask" => {
                let ask: Ask = header.fields()?;
                ask.check().map(|()| Self::Ask(ask))
            }
            "drain" => Ok(Self::Drain),
            "bye" => Ok(Self::Bye),
            "error" => header.fields().map(Self::Error),
            other => Err(unsupported(other)),
        }
    }
}
