//! What the writer, the readers and the listener of a store have in common.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::api::error::{Error, Result};
use crate::api::news::{NewsSender, TaskNews};
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

/// The port that a URL need not say.
const USUAL_PORT: u16 = 5432;

/// What the writer, the readers and the listener have in common.
pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) sql: Sql,
    pub(super) options: PostgresOptions,
    pub(super) pool: Pool,
    /// Whether connections keep the plans of their statements: not where each transaction may meet
    /// another process of the server.
    pub(super) plans: Arc<AtomicBool>,
    /// How many transactions wait for the disk.
    pub(super) unflushed: AtomicUsize,
    /// Tells this process's messages from those of others.
    pub(super) node: u64,
    /// The stamp of the store when this process saw it last.
    pub(super) stamp: AtomicI64,
    pub(super) server_clock: Arc<ServerClock>,
    pub(super) hints: watch::Sender<Hint>,
    pub(super) news: NewsSender,
    /// Rung when there may be something in the inbox.
    pub(super) inbox: Arc<Notify>,
    /// Whether the role may look into the inbox.
    pub(super) sees_inbox: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("location", &self.location()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        match &self.options.clock {
            Some(clock) => Arc::clone(clock),
            None => Arc::clone(&self.server_clock) as Arc<dyn Clock>,
        }
    }

    /// The time by the store's clock, where the server's says `microseconds`.
    pub(super) fn now(&self, microseconds: i64) -> Now {
        let server = self.server_clock.heard(microseconds);
        match &self.options.clock {
            Some(clock) => Now { wall: clock.now(), steady: clock.steady() },
            None => server,
        }
    }

    /// The time by the store's clock, as far as can be told without asking the server.
    pub(super) fn about_now(&self) -> Now {
        match &self.options.clock {
            Some(clock) => Now { wall: clock.now(), steady: clock.steady() },
            None => self.server_clock.about_now(),
        }
    }

    /// Takes note of what was committed. A hint is never the truth, so that whoever hears it may
    /// look already.
    pub(super) fn committed(&self, applied: &Applied) {
        self.stamp.store(applied.stamp(), Ordering::Relaxed);
        self.hint(applied.hint);
    }

    /// Tells those who wait here what is on disk.
    pub(super) fn tell(&self, news: Vec<TaskNews>) {
        self.news.tell(news);
    }

    /// Counts transactions that wait for the disk.
    pub(super) fn unflushed(&self, transactions: usize) {
        self.unflushed.fetch_add(transactions, Ordering::AcqRel);
    }

    pub(super) fn flushed(&self, transactions: usize) {
        self.unflushed.fetch_sub(transactions, Ordering::AcqRel);
    }

    /// Whether none waits.
    pub(super) fn is_flushed(&self) -> bool {
        self.unflushed.load(Ordering::Acquire) == 0
    }

    pub(super) fn hint(&self, hint: Hint) {
        self.hints.send_if_modified(|hints| {
            hints.add(hint);
            hint != Hint::default()
        });
    }

    /// Takes the stamp that the store has now; another one than the last says that somebody else
    /// wrote. Answers whether it is another.
    pub(super) fn saw(&self, stamp: i64) -> bool {
        let is_new = self.stamp.swap(stamp, Ordering::Relaxed) != stamp;
        if is_new {
            self.anything_may_have_happened();
        }
        is_new
    }

    /// Nobody knows what was written meanwhile: whoever waits looks again.
    pub(super) fn anything_may_have_happened(&self) {
        self.others_wrote(Hint::all());
    }

    /// Somebody else wrote: anything may have happened.
    pub(super) fn others_wrote(&self, hint: Hint) {
        self.news.tell_missed();
        self.hint(hint);
    }

    /// What other processes are told.
    pub(super) fn message(&self, hint: Hint) -> String {
        wake::message(self.node, hint)
    }

    pub(super) fn location(&self) -> String {
        location(&self.address.config, &self.sql.schema)
    }

    /// What is told to callers: which server it is that failed.
    pub(super) fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| named(error, &self.location()))
    }
}

/// A store for people: without user and password.
pub(super) fn location(config: &Config, schema: &str) -> String {
    let host = |(at, host): (usize, &Host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        // One port may be for all.
        match config.get_ports().get(at).or(config.get_ports().first()) {
            Some(port) if *port != USUAL_PORT => format!("{name}:{port}"),
            _ => name,
        }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}#{schema}", hosts.join(","))
}

/// Says at which server something failed; what it did not say has nothing to do with it.
#[cold]
pub(super) fn named(error: Error, location: &str) -> Error {
    if driver_error(&error).is_some() { error.about(location) } else { error }
}

/// A number that nobody else has, as good as certainly.
pub(super) fn node() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The moment of a read by the store's clock.
pub(super) fn wall(shared: &Shared) -> Timestamp {
    shared.clock().now()
}
