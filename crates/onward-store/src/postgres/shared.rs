//! The state that a store's writer, readers and listener share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::api::error::{Error, Result};
use crate::api::notification::{NotificationSender, TaskNotification};
use crate::api::store::Hint;
use crate::api::timestamp::Timestamp;
use crate::clock::Clock;
use crate::model::Now;
use crate::postgres::connect::connection::Address;
use crate::postgres::connect::error::driver_error;
use crate::postgres::connect::options::PostgresOptions;
use crate::postgres::connect::pool::Pool;
use crate::postgres::connect::server_clock::ServerClock;
use crate::postgres::sql::Sql;
use crate::postgres::wake;
use crate::postgres::working_set::applied::Applied;
use crate::watch;

/// The port that a URL may omit.
const USUAL_PORT: u16 = 5432;

/// The state that the writer, the readers and the listener share.
pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) sql: Sql,
    pub(super) options: PostgresOptions,
    pub(super) pool: Pool,
    /// True if connections keep prepared statements. False behind a pooler, where each transaction
    /// may run in another server process.
    pub(super) plans: Arc<AtomicBool>,
    /// The number of committed transactions that are not on disk yet.
    pub(super) unflushed: AtomicUsize,
    /// The random number of this process, by which it ignores its own notifications.
    pub(super) node: u64,
    /// The store's stamp when this process last saw it.
    pub(super) stamp: AtomicI64,
    /// The server's clock, as far as replies have shown it.
    pub(super) server_clock: Arc<ServerClock>,
    /// The sum of all hints so far, for [`Changes`](crate::Changes).
    pub(super) hints: watch::Sender<Hint>,
    /// The notifications about ended tasks.
    pub(super) notifications: NotificationSender,
    /// Notified when the inbox may have rows.
    pub(super) inbox: Arc<Notify>,
    /// True if the role may read the inbox.
    pub(super) sees_inbox: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("location", &self.location()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Returns the store's clock: that of the options, or the server's.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        match &self.options.clock {
            Some(clock) => Arc::clone(clock),
            None => Arc::clone(&self.server_clock) as Arc<dyn Clock>,
        }
    }

    /// Returns the store's time, given the server's time in microseconds from a reply.
    pub(super) fn now(&self, microseconds: i64) -> Now {
        let server = self.server_clock.received(microseconds);
        match &self.options.clock {
            Some(clock) => Now { wall: clock.now(), steady: clock.steady() },
            None => server,
        }
    }

    /// Returns the store's time without a round trip: the server's last known time plus the time
    /// that has passed here.
    pub(super) fn about_now(&self) -> Now {
        match &self.options.clock {
            Some(clock) => Now { wall: clock.now(), steady: clock.steady() },
            None => self.server_clock.about_now(),
        }
    }

    /// Records a commit. It publishes the hint before the commit is on disk, because the receiver
    /// of a hint only reads the store again.
    pub(super) fn committed(&self, applied: &Applied) {
        self.stamp.store(applied.stamp(), Ordering::Relaxed);
        self.hint(applied.hint);
    }

    /// Notifies this process's waiting callers of changes that are on disk.
    pub(super) fn notify(&self, notifications: Vec<TaskNotification>) {
        self.notifications.notify(notifications);
    }

    /// Adds to the number of transactions that are not on disk yet.
    pub(super) fn unflushed(&self, transactions: usize) {
        self.unflushed.fetch_add(transactions, Ordering::AcqRel);
    }

    /// Subtracts transactions that are on disk, or whose wait has failed.
    pub(super) fn flushed(&self, transactions: usize) {
        self.unflushed.fetch_sub(transactions, Ordering::AcqRel);
    }

    /// Returns true if every committed transaction is on disk.
    pub(super) fn is_flushed(&self) -> bool {
        self.unflushed.load(Ordering::Acquire) == 0
    }

    /// Publishes a hint, unless it is empty.
    pub(super) fn hint(&self, hint: Hint) {
        self.hints.send_if_modified(|hints| {
            hints.add(hint);
            hint != Hint::default()
        });
    }

    /// Records the store's current stamp. Returns true if it differs from the last one, which means
    /// that another process has written.
    pub(super) fn record_stamp(&self, stamp: i64) -> bool {
        let is_new = self.stamp.swap(stamp, Ordering::Relaxed) != stamp;
        if is_new {
            self.notify_unknown_change();
        }
        is_new
    }

    /// Makes every waiting caller of this process read again, because an unknown change may have
    /// happened.
    pub(super) fn notify_unknown_change(&self) {
        self.others_wrote(Hint::all());
    }

    /// Publishes another process's hint. Its completions are not known here, so subscribers are
    /// informed that they missed some.
    pub(super) fn others_wrote(&self, hint: Hint) {
        self.notifications.notify_missed();
        self.hint(hint);
    }

    /// Returns the notification's text for other processes.
    pub(super) fn message(&self, hint: Hint) -> String {
        wake::message(self.node, hint)
    }

    /// Returns the store's address for messages, without user and password.
    pub(super) fn location(&self) -> String {
        location(&self.address.config, &self.sql.schema)
    }

    /// Adds the server's address to an error of the server.
    pub(super) fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| named(error, &self.location()))
    }
}

/// Returns a store's address for messages, without user and password.
pub(super) fn location(config: &Config, schema: &str) -> String {
    let host = |(at, host): (usize, &Host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        // A single port applies to all hosts.
        match config.get_ports().get(at).or(config.get_ports().first()) {
            Some(port) if *port != USUAL_PORT => format!("{name}:{port}"),
            _ => name,
        }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}#{schema}", hosts.join(","))
}

/// Adds the server's address to an error of the server. An error that the server did not cause
/// stays as it is.
#[cold]
pub(super) fn named(error: Error, location: &str) -> Error {
    if driver_error(&error).is_some() { error.about(location) } else { error }
}

/// Returns a random number, unique with near certainty.
pub(super) fn node() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Returns the time of a read by the store's clock.
pub(super) fn wall(shared: &Shared) -> Timestamp {
    shared.clock().now()
}
