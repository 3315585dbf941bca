//! Storage for [Onward](https://docs.rs/onward): the storage interface, the rules that every store
//! obeys, and the stores.
//!
//! Every change of state is a value, a [`Write`], and [`Store::apply`] is the only method that
//! applies one. Each write is atomic and returns its own [`Outcome`]. The writes of one call become
//! durable together.
//!
//! ```
//! use onward_store::{Claim, MemoryStore, NewTask, OpenSession, Outcome, Store, Write};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let open = OpenSession::new("worker-1", Duration::from_secs(10));
//! let outcomes = store.apply(vec![
//!     Write::Submit(Box::new(NewTask::new("greet")?)),
//!     Write::OpenSession(open),
//! ]).await?;
//! let Outcome::SessionOpened(session) = outcomes[1] else { panic!("a session was asked for") };
//!
//! let claim = Claim::any(session, 10);
//! let outcomes = store.apply(vec![Write::Claim(claim)]).await?;
//! let Outcome::Claimed(claimed) = &outcomes[0] else { panic!("a claim was asked for") };
//! let done = Write::Complete { lease: claimed.tasks[0].lease, result: Some("hello".into()) };
//! assert_eq!(store.apply(vec![done]).await?, [Outcome::Done]);
//! # Ok(()) }
//! ```
//!
//! In reading order: [`NewTask`] and the states of a task; [`Write`] and [`Outcome`]; [`Store`];
//! the [`rules`], which every store obeys; [`MemoryStore`], which is their specification; and
//! [`SqliteStore`].
//!
//! This crate runs no work: it knows no handlers and has no policy. The engine provides these.
// The backends share encodings and rules. A build without SQLite leaves a few of them unused. A
// condition on each of them would be harder to read than this attribute.
#![cfg_attr(not(feature = "sqlite"), allow(dead_code))]

mod api;
pub mod bounds;
mod clock;
mod codec;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
mod copy;
mod decorator;
mod memory;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod migrations;
mod model;
mod number_map;
#[cfg(feature = "postgres")]
mod postgres;
pub mod rules;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod text;
pub mod watch;

pub use api::aggregate::{Aggregate, PendingBatch, PendingBatchSelection};
pub use api::bulk::{Bulk, BulkDone, BulkVerb, StateCounts};
pub use api::completion::{CompletionToken, CompletionWait, ExternalCompletion};
pub use api::dependency::{Dependencies, Dependency, OnDependencyFailure};
pub use api::document::{
    DocumentCursor, DocumentPage, DocumentQuery, DocumentRecord, DocumentSelection, ExpectedVersion, PutDocument,
};
pub use api::error::{Error, Result};
pub use api::event::{Change, Event, EventCursor, EventPage};
pub use api::history::QueueDay;
pub use api::io::{Io, IoKind, IoStatistics};
pub use api::limit::{GroupShare, Limit, LimitRecord, LimitScope, Rate, RateLimit, SetLimit};
pub use api::name::Name;
pub use api::notification::{
    Notification, NotificationMap, NotificationReceiver, NotificationSender, TaskNotification,
};
pub use api::orchestration::{
    AfterTurn, AttemptEnd, ChildTask, ClaimedInstance, EndWithTurn, Ended, HistoryChunk, Hold, InstanceRecord, Message,
    MessageBody, Recipient, Signal, Turn, Turned,
};
pub use api::outcome::{Claimed, Failed, Outcome, Refusal, Submitted, Swept};
pub use api::output::{OutputPiece, OutputStream, TaskOutput};
pub use api::queue::{ConcurrencyLimit, QueueChoice, QueueMode, QueueSettings, QueueTurn, SetQueue};
pub use api::read::{Read, ReadReply, StoreReads};
pub use api::reason::WaitReason;
pub use api::result::TaskResult;
pub use api::schedule::{
    AfterFiring, CatchUp, FireSchedule, Fired, Firing, LastFiring, NewSchedule, NextFiring, Overlap, Recurrence,
    ScheduleError, ScheduleRecord, ScheduleSelection, ScheduleSet, SetSchedule,
};
pub use api::served::{Served, ServedCode};
pub use api::store::{
    Changes, Durability, EndedCounts, Hint, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store,
    StoreFuture, StoreInfo, TaskFilter, TaskIdPage, TaskPage,
};
pub use api::tag::{TagKeyPage, TagPage, TagValue, TagValuePage, Tags};
pub use api::task::{
    AttemptError, ByteProgress, ClaimedTask, Lease, NewTask, OnDuplicate, Priority, Progress, SessionId, TaskId,
    TaskRecord, TaskState, Ttl, TtlFrom, UniqueKey, When,
};
pub use api::timestamp::Timestamp;
pub use api::write::{AfterFailure, Claim, KindMatch, KindSelection, OpenSession, Prune, QueueSelection, Scope, Write};
pub use clock::{Clock, ManualClock, SystemClock};
pub use codec::{CodecStore, PayloadCodec};
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use copy::{Copied, CopyEnd, copy};
pub use decorator::StoreDecorator;
pub use memory::MemoryStore;
pub use number_map::{NumberHash, NumberHasher, NumberMap};
#[cfg(feature = "postgres")]
pub use postgres::{AppliedOnServer, CompletionStatement, PostgresOptions, PostgresReport, PostgresStore};
/// The driver that [`SqliteStore`] uses, re-exported for callers that [submit in their own
/// transaction](SqliteStore::submit_in). The connection must come from this version of the driver.
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "sqlite")]
pub use sqlite::{
    AppliedInTransaction, CheckReport, CommitCounts, Compacted, LockHolder, SqliteOptions, SqliteReader, SqliteStore,
    SubmittedInTransaction,
};
/// The driver that [`PostgresStore`] uses, re-exported for callers that [submit in their own
/// transaction](PostgresStore::submit_in). The connection must come from this version of the
/// driver.
#[cfg(feature = "postgres")]
pub use tokio_postgres;
