//! Options for opening a PostgreSQL store.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;

use crate::api::error::{Error, Result};
use crate::api::store::Durability;
use crate::api::task::check_payload_limit;
use crate::bounds;
use crate::clock::Clock;
use crate::migrations::Migrations;
use crate::postgres::connect::connection::{Address, connect};
use crate::postgres::connect::encryption::TlsParameters;
use crate::postgres::connect::environment::Defaults;
use crate::postgres::connect::rights;
use crate::postgres::migrations::migrate::MIGRATIONS;
use crate::postgres::sql::Sql;
use crate::postgres::store::PostgresStore;

/// The longest name of a schema, in bytes: PostgreSQL truncates longer identifiers.
const SCHEMA_BYTES: usize = 63;

/// The time without any sign of the server's machine after which a connection counts as lost.
const UNANSWERED: Duration = Duration::from_secs(10);

/// Options for opening a PostgreSQL store, from [`PostgresStore::options`].
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
    pub(in crate::postgres) retry_for: Duration,
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
            retry_for: bounds::SERVER_AWAY,
            migrations: MIGRATIONS,
        }
    }
}

impl PostgresOptions {
    /// Sets the schema of the store's tables, which is created if it is missing: 1 to 63 bytes of
    /// `a`–`z`, `0`–`9` and `_`, not beginning with a digit. Each schema is a separate store.
    /// Default: `onward`.
    #[must_use]
    pub fn schema(self, schema: impl Into<String>) -> Self {
        Self { schema: schema.into(), ..self }
    }

    /// Sets the largest payload or result in bytes. Opening fails with more than
    /// [`bounds::PAYLOAD_BYTES_CEILING`], 256 MiB. Default: 1 MiB.
    #[must_use]
    pub fn payload_limit(self, bytes: usize) -> Self {
        Self { payload_limit: bytes, ..self }
    }

    /// Sets what an acknowledgement guarantees. [`Durability::Full`], the default, waits until the
    /// server's log is synced, as far as the server is configured to sync. The other levels do not
    /// wait (`synchronous_commit = off`).
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets the clock, for tests. All processes that use the store must share it. Default: the
    /// server's clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Sets the most connections for reads, at least 1. Two more connections write and listen.
    /// Default: 4.
    #[must_use]
    pub fn readers(self, readers: usize) -> Self {
        Self { readers: readers.max(1), ..self }
    }

    /// Turns `LISTEN` for notifications of other processes on or off. A pooler in transaction mode
    /// passes none: a test on opening finds that out, and the store then polls for changes, as it
    /// does with `false`. Default: on.
    #[must_use]
    pub fn listen(self, listen: bool) -> Self {
        Self { listen, ..self }
    }

    /// Sets the longest interval between polls for changes of other processes, at least 10 ms.
    /// Default: 5 s.
    ///
    /// Without notifications the store polls 10 times a second after a change, and half as often
    /// after each poll that found none. With notifications it polls a sixth as often, because a
    /// notification can be lost.
    #[must_use]
    pub fn poll(self, poll: Duration) -> Self {
        Self { poll: poll.max(Duration::from_millis(10)), ..self }
    }

    /// Turns the creation of a missing schema and its tables on or off. With `false`, opening a
    /// store that does not exist is an error. Default: on.
    #[must_use]
    pub fn create(self, create: bool) -> Self {
        Self { create, ..self }
    }

    /// Sets the time for which a call retries while the server is away: crashed, starting, or cut
    /// off. Default: [`bounds::SERVER_AWAY`].
    ///
    /// The time counts from the first failure, and the attempt that is running at its end may
    /// exceed it. Opening a store waits the same way for a server that is starting or has no free
    /// connection. It fails at once if no server can be reached.
    #[must_use]
    pub fn retry_for(self, retry_for: Duration) -> Self {
        Self { retry_for, ..self }
    }

    /// Adds the scripts of a hypothetical later version, for tests of upgrades.
    #[doc(hidden)]
    #[must_use]
    pub fn added_migrations(self, scripts: &'static [&'static str]) -> Self {
        Self { migrations: MIGRATIONS.and(scripts), ..self }
    }

    /// Opens the store at a URL (`postgres://user@host/database`), and creates its tables if they
    /// are missing. A `#name` after the URL is another way to set the [schema](Self::schema).
    ///
    /// Parameters that the URL omits come from a service file (`?service=NAME`, `PGSERVICE`), from
    /// variables, and from the password file, with the same precedence as in PostgreSQL's own
    /// programs. The variables are `PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE`, `PGPASSWORD`,
    /// `PGSSLMODE` and so on.
    ///
    /// Call it within a tokio runtime that lives until the store is dropped, because the
    /// connections run there.
    ///
    /// # Errors
    /// * [`is_invalid`](Error::is_invalid) for an invalid URL or schema.
    /// * [`is_not_found`](Error::is_not_found) if there is no store, and none is to be
    ///   [created](Self::create).
    /// * [`is_version`](Error::is_version) for a store of a newer version, or of a development
    ///   version from before 0.1.
    /// * The server's error otherwise.
    pub async fn open(self, url: &str) -> Result<PostgresStore> {
        let (address, options) = self.read(url)?;
        PostgresStore::open_with(address, options).await
    }

    /// Returns the rights that the role of a URL lacks to use the store, as the statements that
    /// grant them; empty if nothing is missing. The owner of the schema or the database can run
    /// these. No store is opened, and nothing is created.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for an invalid URL or schema; the server's error
    /// otherwise.
    pub async fn missing_rights(self, url: &str) -> Result<Vec<String>> {
        let (address, options) = self.read(url)?;
        let client = connect(&address).await?;
        rights::missing(&client, &Sql { schema: options.schema }, options.migrations).await
    }

    /// Returns the address that a URL and the environment name, and the options with the schema of
    /// the URL.
    pub(in crate::postgres) fn read(mut self, url: &str) -> Result<(Address, Self)> {
        check_url(url)?;
        let (url, schema) = url.split_once('#').map_or((url, None), |(url, schema)| (url, Some(schema)));
        if let Some(schema) = schema {
            self = self.schema(schema);
        }
        check_schema(&self.schema)?;
        check_payload_limit(self.payload_limit)?;
        let (service, url) = take_service(url);
        let defaults = Defaults::read(service, &|name| std::env::var(name).ok())?;
        let (wanted, url) = TlsParameters::take_from(&url, &defaults)?;
        // The driver's error can contain a part of the password, so it is not shown.
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

/// Rejects anything but a URL. The driver also accepts `host=… sslmode=…`, whose encryption
/// parameters this module would not see.
fn check_url(url: &str) -> Result<()> {
    // The URL may contain a password, so no part of it is shown.
    let Some(rest) = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme)) else {
        return Err(Error::invalid("a PostgreSQL store is named by a URL; write postgres://user@host/database"));
    };
    // Text before an `@` that is not the first, or after a character that ends the host, would be
    // taken for a host or a schema, and shown.
    let authority = rest.find(['/', '?', '#']).map_or(rest, |end| &rest[..end]);
    if authority.matches('@').count() > 1 || rest[authority.len()..].contains('@') {
        return Err(Error::invalid(
            "the user name, the password or a parameter in the PostgreSQL URL has a character that ends it; write %40 for @, \
             %3A for :, %2F for /, %3F for ?, %23 for # and %25 for %, or set PGPASSWORD",
        ));
    }
    Ok(())
}

/// Takes the parameter `service` out of a URL, and returns the rest as well.
fn take_service(url: &str) -> (Option<String>, String) {
    let Some((place, parameters)) = url.split_once('?') else { return (None, url.to_owned()) };
    let is_service = |parameter: &&str| parameter.starts_with("service=");
    let (service, others): (Vec<&str>, Vec<&str>) = parameters.split('&').partition(|it| is_service(it));
    let service = service.last().and_then(|it| it.strip_prefix("service=")).map(str::to_owned);
    (service, format!("{place}?{}", others.join("&")))
}

/// Sets what the URL leaves open: a name in the server's list of connections, and bounds on the
/// time for which a cut network goes unnoticed.
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

/// Checks the name of a schema. Statements contain it unquoted, so only safe characters are
/// accepted.
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
