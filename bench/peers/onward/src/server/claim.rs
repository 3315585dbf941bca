//! Measures the cost of a claim on the server: the time of every statement of its transaction, with
//! planning and commit, as `pg_stat_statements` counts it.

use anyhow::{Context as _, Result, bail, ensure};
use bench_protocol::{Latencies, Measurement, Request, now};
use onward_store::tokio_postgres::{Client, NoTls, connect};
use onward_store::{Claim, Durability, Name, NewTask, OpenSession, Outcome, PostgresStore, SessionId, Store, Write};

/// The number of tasks that a claim asks for.
const CLAIM: usize = 10;
/// The number of earlier claims of one task, which make plans and fill caches.
const BEFORE: usize = 10;
/// The number of tasks in a submit.
const BATCH: usize = 5000;
/// A lease longer than any run.
const LEASE: std::time::Duration = std::time::Duration::from_secs(3600);

/// Measures consecutive claims on a store. As many tasks are ready as the row has waiting, all in
/// one sub-queue or spread over the row's groups.
pub(crate) async fn claim_cost(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let groups = if request.settings == "groups" { row.groups } else { 1 };
    let server = Counted::connect(request.server()?).await?;
    let store = PostgresStore::options().durability(Durability::Normal).open(&server.url).await?;
    let session = session(&store).await?;
    // The analysis sees empty tables, as on a store that was empty for long. Plans made now are
    // used later.
    server.client.batch_execute("VACUUM ANALYZE").await?;
    fill(&store, row.backlog.waiting, groups, row.payload_bytes).await?;
    for _ in 0..BEFORE {
        claim(&store, session, 1).await?;
    }
    server.client.batch_execute("SELECT pg_stat_statements_reset()").await?;
    let mut seen = Latencies::with_capacity(row.count);
    for _ in 0..row.count {
        let before = now();
        claim(&store, session, CLAIM).await?;
        seen.record(before.elapsed());
    }
    let cost = server.microseconds().await? / row.count as f64;
    Ok(Measurement::of(cost).with_latencies(seen).observed("claimed", row.count as u64))
}

/// The server, with the connection that reads its statistics.
struct Counted {
    client: Client,
    /// The URL of the store, with the role whose statements are counted.
    url: String,
}

impl Counted {
    async fn connect(url: &str) -> Result<Self> {
        let (client, connection) = connect(url, NoTls).await.context("the server cannot be reached")?;
        tokio::spawn(connection);
        let made =
            "CREATE EXTENSION pg_stat_statements; CREATE ROLE node LOGIN; GRANT CREATE ON DATABASE postgres TO node";
        client.batch_execute(made).await?;
        Ok(Self { client, url: url.replace("onward@", "node@") })
    }

    async fn microseconds(&self) -> Result<f64> {
        let text =
            "SELECT sum(total_exec_time + total_plan_time) FROM pg_stat_statements WHERE userid = 'node'::regrole";
        let milliseconds: f64 = self.client.query_one(text, &[]).await?.get(0);
        Ok(milliseconds * 1000.0)
    }
}

async fn session(store: &PostgresStore) -> Result<SessionId> {
    match store.apply(vec![Write::OpenSession(OpenSession::new("bench", LEASE))]).await?.pop() {
        Some(Outcome::SessionOpened(session)) => Ok(session),
        other => bail!("no session was opened: {other:?}"),
    }
}

/// Claims tasks, and checks that it got as many as it asked for.
async fn claim(store: &PostgresStore, session: SessionId, tasks: usize) -> Result<()> {
    match store.apply(vec![Write::Claim(Claim::any(session, tasks))]).await?.pop() {
        Some(Outcome::Claimed(claimed)) => {
            ensure!(claimed.tasks.len() == tasks, "a claim of {tasks} got {}", claimed.tasks.len());
            Ok(())
        }
        other => bail!("a claim of {tasks} tasks returned {other:?}"),
    }
}

async fn fill(store: &PostgresStore, tasks: usize, groups: usize, payload_bytes: usize) -> Result<()> {
    for first in (0..tasks).step_by(BATCH) {
        let numbers = first..tasks.min(first + BATCH);
        let writes = numbers.map(|number| submit(number, groups, payload_bytes)).collect::<Result<Vec<_>>>()?;
        store.apply(writes).await?;
    }
    Ok(())
}

fn submit(number: usize, groups: usize, payload_bytes: usize) -> Result<Write> {
    let mut new = NewTask::new("mail")?;
    new.payload = vec![b'x'; payload_bytes].into();
    new.group = if groups > 1 { Some(Name::new(format!("tenant {}", number % groups))?) } else { None };
    Ok(Write::Submit(Box::new(new)))
}
