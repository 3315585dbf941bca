//! A server that counts what it is asked, and how long it takes.

use anyhow::{Context as _, Result};
use onward_store::tokio_postgres::{Client, NoTls, connect};
use onward_testkit::postgres::Server;

/// Where Debian has the programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// What the store asked since the last reset.
pub(crate) struct Cost {
    pub(crate) calls: i64,
    pub(crate) milliseconds: f64,
    /// Of the statements that look for what is ready.
    pub(crate) looking: f64,
}

pub(crate) struct Counted {
    server: Server,
    client: Client,
}

impl Counted {
    pub(crate) async fn start() -> Result<Self> {
        if std::env::var_os("ONWARD_POSTGRES_PROGRAMS").is_none() {
            start_again_with(PROGRAMS)?;
        }
        let settings = [
            "shared_preload_libraries=pg_stat_statements",
            "pg_stat_statements.track_planning=on",
            "shared_buffers=256MB",
            "autovacuum=off",
        ];
        let server = Server::with_settings(&settings).context("there is no PostgreSQL")?;
        let (client, connection) = connect(&server.url(), NoTls).await?;
        tokio::spawn(connection);
        let made =
            "CREATE EXTENSION pg_stat_statements; CREATE ROLE node LOGIN; GRANT CREATE ON DATABASE postgres TO node";
        client.batch_execute(made).await?;
        Ok(Self { server, client })
    }

    /// As the role that is counted.
    pub(crate) fn url(&self) -> String {
        self.server.url().replace("onward@", "node@")
    }

    pub(crate) async fn analyze(&self) -> Result<()> {
        Ok(self.client.batch_execute("VACUUM ANALYZE").await?)
    }

    pub(crate) async fn reset(&self) -> Result<()> {
        Ok(self.client.batch_execute("SELECT pg_stat_statements_reset()").await?)
    }

    pub(crate) async fn cost(&self) -> Result<Cost> {
        let text = "SELECT query, calls, total_exec_time + total_plan_time FROM pg_stat_statements \
                    WHERE userid = 'node'::regrole ORDER BY 3 DESC";
        let rows = self.client.query(text, &[]).await?;
        let mut cost = Cost { calls: 0, milliseconds: 0.0, looking: 0.0 };
        for row in &rows {
            let (query, calls, milliseconds): (String, i64, f64) = (row.get(0), row.get(1), row.get(2));
            cost.calls += calls;
            cost.milliseconds += milliseconds;
            if query.contains("WITH RECURSIVE lane") || query.contains("t.state = $") {
                cost.looking += milliseconds;
            }
            if std::env::var_os("ONWARD_BENCH_STATEMENTS").is_some() {
                eprintln!("{calls:6} {milliseconds:9.3} ms {}", query.chars().take(110).collect::<String>());
            }
        }
        Ok(cost)
    }
}

/// The environment can only be set for another process.
fn start_again_with(programs: &str) -> Result<()> {
    let status = std::process::Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env("ONWARD_POSTGRES_PROGRAMS", programs)
        .status()?;
    std::process::exit(status.code().unwrap_or(1));
}
