//! Speculation: a writer decides calls over rows in its cache that may have become invalid. It
//! verifies them under the store's lock, before it commits.
//!
//! A writer remembers tasks and counters from its last transaction. Each task in its row cache is
//! in one of three states:
//!
//! ```text
//!            loaded, or written in an own transaction
//!      +-----------------------------------------------------+
//!      |                                                     |
//!      v         another writer has committed                |
//! +----------+ ----------------------------> +------------+  |
//! | verified |                               | unverified |  |
//! +----------+ <---------------------------- +------------+  |
//!                its own session, and no           |         |
//!                invalidation since; or an         | else    |
//!                unchanged row without relations   v         |
//!                                             +---------+    |
//!                                             | invalid | ---+
//!                                             +---------+
//! ```
//!
//! * **Verified**: the sequence `last_write` has the number of the writer's own last transaction
//!   ([`row_cache`]). The row is used as it is.
//! * **Unverified**: another writer has committed since. A task that runs in one of the writer's
//!   [`own_sessions`] is still valid as long as the sequence `last_invalidation` has the number
//!   with which the task was last verified. [`invalidation`] decides which transactions set it. Any
//!   other task is compared with its row ([`validation`]).
//! * **Invalid**: neither holds. The row is loaded in one more round trip.
//!
//! All of this is checked under the store's lock, in the first round trip of a transaction
//! (`commit/begin.rs`). A new connection empties the row cache. If the server lost the writer's
//! last commit in a crash, the writer forgets everything except which sessions it has opened.
//!
//! A plan, which is a speculative decision on calls, has states of the same names:
//!
//! * **Unverified**: while the server writes one batch, [`batch_builder`] collects the next and
//!   [`plan`] decides its first writes over the row cache. Nothing of it is sent.
//! * **Verified**: the transaction before has committed, no other writer came between, and the
//!   numbers and the time of the store are those that were presumed. The decision is continued.
//! * **Invalid**: one of these does not hold. The transaction is rolled back, and all of its calls
//!   are decided again without a plan.
//!
//! [`fast_path`] does the same in one statement: it takes the lock, compares the numbers, and
//! writes nothing if they differ.
//!
//! The other modules save time without presuming anything. [`eager_writes`] sends rows that are
//! final while the rest of their batch is decided, in the same transaction. [`ordered_polling`]
//! waits for one reply of the server while earlier ones arrive. [`columnar_batch`] finds tasks that
//! differ in few columns, and [`columnar_write`] sends their common values once.
//!
//! For the reasons and the gain of each see `docs/design/0013-postgresql-row-cache.md` and
//! `docs/design/0014-postgresql-speculation.md`.

pub(super) mod batch_builder;
pub(super) mod columnar_batch;
pub(super) mod columnar_write;
pub(super) mod eager_writes;
pub(super) mod fast_path;
pub(super) mod invalidation;
pub(super) mod ordered_polling;
pub(super) mod own_sessions;
pub(super) mod plan;
pub(super) mod row_cache;
pub(super) mod validation;
