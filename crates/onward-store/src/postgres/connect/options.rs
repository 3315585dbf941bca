//! How a PostgreSQL store is opened.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;

use crate::api::error::{Error, Result};
use crate::api::store::Durability;
use crate::bounds;
use crate::clock::Clock;
use crate::migrations::Migrations;
use crate::postgres::connect::connection::{Address, connect};
use crate::postgres::connect::encryption::Wanted;
use crate::postgres::connect::environment::Defaults;
use crate::postgres::connect::rights;
use crate::postgres::migrations::migrate::MIGRATIONS;
use crate::postgres::sql::Sql;
use crate::postgres::store::PostgresStore;

/// The longest name of a schema, in bytes: what PostgreSQL keeps of an identifier.
const SCHEMA_BYTES: usize = 63;

/// For how long the server's machine may say nothing at all before a connection counts as lost.
const UNANSWERED: Duration = Duration::from_secs(10);

/// How a PostgreSQL store is opened. Made by [`PostgresStore::options`].
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub(in crate::postgres) schema: String,
    pub(in crate::postgres) payload_limit: usize,
    pub(in crate::postgres) durability: Durability,
    pub(in crate::postgres) clock: Option<Arc<dyn Clock>>,
    pub(in crate::postgres) readers: usize,
    pub(in crate::postgres) listen: bool,
    pub(in crate::postgres) poll: Duration,
    pub(in crate::postgres) create: bool,
    pub(in crate::postgres) patience: Duration,
    pub(in crate::postgres) migrations: Migrations,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "onward".to_owned(),
            payload_limit: bounds::PAYLOAD_BYTES,
            durability: Durability::Full,
            clock: None,
            readers: 4,
            listen: true,
            poll: Duration::from_secs(5),
            create: true,
            patience: bounds::SERVER_AWAY,
            migrations: MIGRATIONS,
        }
    }
}

impl PostgresOptions {
    /// The schema that holds the store's tables, made if it is not there: 1 to 63 bytes of `a`–`z`,
    /// `0`–`9` and `_`, not beginning with a digit. Each schema is a store of its own. Default:
    /// `onward`.
    #[must_use]
    pub fn schema(self, schema: impl Into<String>) -> Self {
        Self { schema: schema.into(), ..self }
    }

    /// The largest payload or result it takes, in bytes, at most [`bounds::PAYLOAD_BYTES_CEILING`].
    /// Default: 1 MiB.
    #[must_use]
    pub fn payload_limit(self, bytes: usize) -> Self {
        Self { payload_limit: bytes.min(bounds::PAYLOAD_BYTES_CEILING), ..self }
    }

    /// What an acknowledgement means. [`Durability::Full`], the default, waits for the server's log
    /// to be synced, so far as the server is set up to sync; the others do not wait
    /// (`synchronous_commit = off`).
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// The clock it goes by; for tests. Default: the server's. Every process that uses the store
    /// must go by the same one.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// How many connections read at the most, at least 1; one more writes, and one more listens.
    /// Default: 4.
    #[must_use]
    pub fn readers(self, readers: usize) -> Self {
        Self { readers: readers.max(1), ..self }
    }

    /// Whether it listens to other processes (`LISTEN`). A transaction-mode pooler does not pass
    /// messages; a test at the beginning finds that out, and it looks for changes by itself then,
    /// as it does where this is `false`. Default: yes.
    #[must_use]
    pub fn listen(self, listen: bool) -> Self {
        Self { listen, ..self }
    }

    /// How often it looks for changes by other processes where it does not listen, at the least:
    /// after a change it looks 10 times a second, and half as often each time that nothing has
    /// changed. Where it listens it looks a sixth as often, for a message may get lost. At least 10
    /// ms. Default: 5 s.
    #[must_use]
    pub fn poll(self, poll: Duration) -> Self {
        Self { poll: poll.max(Duration::from_millis(10)), ..self }
    }

    /// Whether the schema and its tables are made where they are missing; else that is an error.
    /// Default: yes.
    #[must_use]
    pub fn create(self, create: bool) -> Self {
        Self { create, ..self }
    }

    /// For how long a call waits for a server that is away (it crashed, it starts, the network is
    /// cut) and is tried again, counted from the first failure: short of a try that is under way
    /// then. Default: [`bounds::SERVER_AWAY`]. Opening a store waits so for a server that is
    /// starting or has no free connection, and fails at once if no server is reached.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Has the scripts of a made-up later version run behind those of this one. For tests of
    /// upgrades.
    #[doc(hidden)]
    #[must_use]
    pub fn added_migrations(self, scripts: &'static [&'static str]) -> Self {
        Self { migrations: MIGRATIONS.and(scripts), ..self }
    }

    /// Opens the store at a URL (`postgres://user@host/database`), and makes its tables if they are
    /// not there. A `#name` behind the URL is another way to name the [schema](Self::schema). What
    /// the URL leaves out comes from a service file (`?service=NAME`, `PGSERVICE`), the variables
    /// `PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE`, `PGPASSWORD`, `PGSSLMODE` and so on, and the
    /// password file, in the order in which PostgreSQL's own programs look. Must be called within a
    /// tokio runtime that stays until the store is dropped: its connections live there.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a URL or a schema that cannot be;
    /// [`is_not_found`](Error::is_not_found) if there is no store and none is to be
    /// [made](Self::create); [`is_version`](Error::is_version) for a store of a newer version, or
    /// of a development version from before 0.1; else what the server says.
    pub async fn open(self, url: &str) -> Result<PostgresStore> {
        let (address, options) = self.read(url)?;
        PostgresStore::open_with(address, options).await
    }

    /// What the role of a URL lacks to use the store there, as the statements that give it, to be
    /// run by whoever owns the schema or the database; empty if nothing is missing. Opens no store
    /// and makes nothing.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a URL or a schema that cannot be; else what the server
    /// says.
    pub async fn missing_rights(self, url: &str) -> Result<Vec<String>> {
        let (address, options) = self.read(url)?;
        let client = connect(&address).await?;
        rights::missing(&client, &Sql { schema: options.schema }, options.migrations).await
    }

    /// What a URL says, and what it leaves open.
    pub(in crate::postgres) fn read(mut self, url: &str) -> Result<(Address, Self)> {
        check_url(url)?;
        let (url, schema) = url.split_once('#').map_or((url, None), |(url, schema)| (url, Some(schema)));
        if let Some(schema) = schema {
            self = self.schema(schema);
        }
        check_schema(&self.schema)?;
        let (service, url) = take_service(url);
        let defaults = Defaults::read(service, &|name| std::env::var(name).ok())?;
        let (wanted, url) = Wanted::take_from(&url, &defaults)?;
        // The error of the driver can have a part of a password in it, so it is not shown.
        let mut config: Config = defaults.add_port(&url)?.parse().map_err(|_| {
            Error::invalid(
                "the PostgreSQL URL cannot be read; write postgres://user@host:port/database?parameter=value, \
                 and %XX for each of `:/?#[]@%` in a user name or password",
            )
        })?;
        config.ssl_mode(wanted.mode);
        defaults.fill_in(&mut config)?;
        fill_in(&mut config);
        Ok((Address { config, tls: wanted.connector()? }, self))
    }
}

/// The driver takes `host=… sslmode=…` as well, of which nothing here would see what it says of
/// encryption.
fn check_url(url: &str) -> Result<()> {
    // The URL may hold a password, so no part of it is shown.
    let Some(rest) = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme)) else {
        return Err(Error::invalid("a PostgreSQL store is named by a URL; write postgres://user@host/database"));
    };
    // Text before an `@` that is not the first, or behind a mark that ends the host, would be taken
    // for a host or a schema and shown.
    let authority = rest.find(['/', '?', '#']).map_or(rest, |end| &rest[..end]);
    let path = rest[authority.len()..].split('?').next().unwrap_or_default();
    if authority.matches('@').count() > 1 || path.contains('@') {
        return Err(Error::invalid(
            "the user name or password in the PostgreSQL URL has a character that ends it; write %40 for @, %3A for :, \
             %2F for /, %3F for ?, %23 for # and %25 for %, or set PGPASSWORD",
        ));
    }
    Ok(())
}

/// Takes the parameter `service` out of a URL. Returns the rest too.
fn take_service(url: &str) -> (Option<String>, String) {
    let Some((place, parameters)) = url.split_once('?') else { return (None, url.to_owned()) };
    let is_service = |parameter: &&str| parameter.starts_with("service=");
    let (service, others): (Vec<&str>, Vec<&str>) = parameters.split('&').partition(|it| is_service(it));
    let service = service.last().and_then(|it| it.strip_prefix("service=")).map(str::to_owned);
    (service, format!("{place}?{}", others.join("&")))
}

/// What the URL leaves open: a name for those who look at the server, and bounds on how long a cut
/// network goes unnoticed.
fn fill_in(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("onward");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(UNANSWERED);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNANSWERED);
    }
    config.keepalives(true).keepalives_idle(UNANSWERED).keepalives_interval(UNANSWERED / 3).keepalives_retries(3);
}

fn check_schema(schema: &str) -> Result<()> {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins_well = schema.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if begins_well && schema.len() <= SCHEMA_BYTES && schema.bytes().all(is_fine) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`{schema}` cannot be the schema of a store; use 1 to {SCHEMA_BYTES} of a–z, 0–9 and _, the first no digit"
    )))
}
