//! Recorded histories, and checks of code on them.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use onward_store::{Name, Tags, TaskId};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::orchestration::code_table::CodeTable;
use crate::orchestration::replay::{HistoryEvent, Nondeterminism};
use crate::orchestration::turn::{History, Instance, InstanceStart, ReplayError, numbered, read_history};

/// The format of [`RecordedHistory::to_bytes`]. The number is never reused.
const FORMAT: u32 = 1;

/// A history with its orchestration's kind, payload and tags. It is kept beside the code, so that
/// tests can [check](Engine::check_history) that new code still does what old code did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedHistory {
    /// The kind of the orchestration.
    pub kind: Name,
    /// The payload with which it was started, or had continued.
    pub payload: Bytes,
    /// The number of times that it had continued as new.
    pub generation: u32,
    /// The events, oldest first.
    pub events: Vec<HistoryEvent>,
    /// The tags at the end of the history.
    pub tags: Tags,
    /// The events that it awaits at the end of the history.
    pub awaits: Vec<Name>,
}

#[derive(Encode, Decode)]
struct Written {
    #[n(0)]
    format: u32,
    #[n(1)]
    kind: String,
    #[n(2)]
    payload: ByteVec,
    #[n(3)]
    generation: u32,
    #[n(4)]
    events: Vec<HistoryEvent>,
    #[n(5)]
    tags: Option<BTreeMap<String, String>>,
    #[n(6)]
    awaits: Option<Vec<String>>,
}

impl RecordedHistory {
    /// Returns the history as bytes for a file, in CBOR.
    ///
    /// # Errors
    /// An error if it cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let written = Written {
            format: FORMAT,
            kind: self.kind.to_string(),
            payload: self.payload.to_vec().into(),
            generation: self.generation,
            events: self.events.clone(),
            tags: Some(self.tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
                .filter(|tags: &BTreeMap<_, _>| !tags.is_empty()),
            awaits: Some(self.awaits.iter().map(Name::to_string).collect()).filter(|it: &Vec<_>| !it.is_empty()),
        };
        let mut bytes = Vec::new();
        minicbor::encode(&written, &mut bytes)
            .map_err(|error| Error::invalid(format!("the history cannot be written: {error}")))?;
        Ok(bytes)
    }

    /// Reads a history from [bytes](Self::to_bytes), of this version or an earlier one.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if they are not a history, or were written by a later
    /// version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Error::invalid(format!("the bytes are not a recorded history: {what}"));
        let written: Written = minicbor::decode(bytes).map_err(|error| wrong(&error.to_string()))?;
        if written.format != FORMAT {
            return Err(wrong(&format!("its format is {}, and this version reads format {FORMAT}", written.format)));
        }
        Ok(Self {
            kind: Name::new(written.kind)?,
            payload: Vec::from(written.payload).into(),
            generation: written.generation,
            events: written.events,
            tags: written.tags.into_iter().flatten().collect(),
            awaits: written.awaits.into_iter().flatten().map(Name::new).collect::<Result<_, _>>()?,
        })
    }
}

/// The reason why code cannot continue a history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckFailure {
    /// No code is registered for the kind, or none that continues what a version of it began.
    NoCode {
        /// The kind.
        kind: Name,
        /// The version; `None` if there is no code of the kind.
        version: Option<u32>,
    },
    /// The registrations are invalid.
    Registrations(String),
    /// The code does something else than the history has.
    Differs(Box<Nondeterminism>),
    /// The code panics, or waits for something that no orchestration can wait for.
    Stuck(String),
}

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCode { kind, version: None } => {
                write!(f, "no code is registered for orchestrations of kind `{kind}`; register it with `orchestrate`")
            }
            Self::NoCode { kind, version: Some(version) } => {
                write!(
                    f,
                    "no registered code of `{kind}` continues orchestrations of version {version}; register that version, or set `since` on a later one"
                )
            }
            Self::Differs(difference) => difference.fmt(f),
            Self::Registrations(text) | Self::Stuck(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for CheckFailure {}

impl From<ReplayError> for CheckFailure {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::NoCode(kind, version) => Self::NoCode { kind, version },
            ReplayError::Nondeterminism(difference) => Self::Differs(difference),
            ReplayError::Stuck(text) => Self::Stuck(text),
            ReplayError::Unreadable(error) | ReplayError::Gone(error) => Self::Registrations(error.to_string()),
        }
    }
}

/// Checks of code against recorded histories.
impl Engine {
    /// Returns the present history of an orchestration, with its kind, payload and tags.
    ///
    /// # Errors
    /// The errors of [`orchestration_history`](Self::orchestration_history).
    pub async fn record_history(&self, orchestration: TaskId) -> Result<RecordedHistory> {
        let (start, history) = self.read_start(orchestration).await?;
        let InstanceStart { kind, payload, generation, tags, .. } = start;
        let History { events, awaits, .. } = history;
        Ok(RecordedHistory { kind, payload, generation, events, tags, awaits })
    }

    /// Replays a history with the code that is [registered](Self::orchestrate) for its kind.
    /// Nothing else runs and nothing is written. A test may use it on histories from production
    /// before new code is deployed.
    ///
    /// # Errors
    /// The reason why the code cannot continue the history.
    pub fn check_history(&self, history: &RecordedHistory) -> Result<(), CheckFailure> {
        self.instance_of(history).map(drop)
    }

    /// Returns the code at the end of the history.
    pub(super) fn instance_of(&self, recorded: &RecordedHistory) -> Result<Instance, CheckFailure> {
        let start = InstanceStart {
            task: TaskId(0),
            kind: recorded.kind.clone(),
            payload: recorded.payload.clone(),
            generation: recorded.generation,
            // The events of the history set how its operations are numbered.
            numbered: recorded.generation,
            tags: recorded.tags.clone(),
        };
        let (events, awaits) = (recorded.events.clone(), recorded.awaits.clone());
        let codes = self.inner.codes().map_err(|error| CheckFailure::Registrations(error.to_string()))?;
        Ok(self.replayed(&codes, start, &History { events, awaits, bytes: 0 })?)
    }

    /// Brings code to the end of a history, as an engine does that takes over the orchestration.
    pub(super) fn replayed(
        &self,
        codes: &CodeTable,
        start: InstanceStart,
        history: &History,
    ) -> Result<Instance, ReplayError> {
        let instance = Instance::at_end_of(self.store().info().payload_limit, codes, start, history)?;
        instance.check_end(&history.awaits)?;
        Ok(instance)
    }

    /// Returns the start of an orchestration and its history, both of one generation.
    pub(super) async fn read_start(&self, orchestration: TaskId) -> Result<(InstanceStart, History)> {
        loop {
            let before = self.orchestration_status(orchestration).await?.record().generation;
            let record = self.record(orchestration).await?;
            // Read after the tags, so that the history has every change of them.
            let (length, awaits) = {
                let status = self.orchestration_status(orchestration).await?;
                (status.record().length, status.awaits().to_vec())
            };
            let history = read_history(&**self.store(), orchestration, length).await;
            let generation = self.orchestration_status(orchestration).await?.record().generation;
            // If the orchestration has continued as new in between, the parts do not fit together.
            if before == generation {
                let (task, kind, payload) = (orchestration, record.kind, record.payload.unwrap_or_default());
                let numbered = numbered(&record.tags, generation);
                let start = InstanceStart { task, kind, payload, generation, numbered, tags: record.tags };
                return Ok((start, History { awaits, ..history? }));
            }
        }
    }
}
