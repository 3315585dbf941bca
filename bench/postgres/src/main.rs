//! `bench-postgres [SIZE...]`: what a claim of 10 tasks costs the server with so many ready (1000, 5000, 10000, 100000 and 1000000 unless told otherwise).
//!
//! Starts a server of its own that does not sync, in the directory that `ONWARD_POSTGRES_PROGRAMS` leads to
//! (`/usr/lib/postgresql/15/bin`), and has it count by `pg_stat_statements`: the time of every statement of a claim's
//! transaction, planning and commit included. Each size once with all tasks in one line, and once spread over 100 groups.
//! Prints a table: the time of all statements of a claim, of those that look for what is ready, and how many statements there are.

mod counted;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use onward_store::{Claim, Durability, Name, NewTask, OpenSession, Outcome, PostgresStore, SessionId, Store, Write};

use crate::counted::Counted;

/// How many tasks a claim asks for.
const CLAIM: usize = 10;

/// How many claims are counted at the most; they take at most half of what is ready.
const CLAIMS: usize = 200;

/// How many tasks are submitted at once.
const BATCH: usize = 5000;

/// How many of them are under way.
const AT_ONCE: usize = 4;

/// How many groups share the tasks, where there are any.
const GROUPS: usize = 100;

#[tokio::main]
async fn main() -> Result<()> {
    let mut sizes: Vec<usize> = std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1_000, 5_000, 10_000, 100_000, 1_000_000];
    }
    let server = Counted::start().await?;
    println!(
        "| ready | lines | server time of a claim of {CLAIM} | of it, looking for what is ready | statements | seen by the caller (median) |"
    );
    println!("|---|---|---|---|---|---|");
    for groups in [1, GROUPS] {
        for size in &sizes {
            row(&server, *size, groups).await?;
        }
    }
    Ok(())
}

async fn row(server: &Counted, ready: usize, groups: usize) -> Result<()> {
    let schema = format!("ready_{ready}_{groups}");
    let options = PostgresStore::options().schema(schema).durability(Durability::Normal);
    let store = Arc::new(options.open(&server.url()).await?);
    let session = session(&store).await?;
    // As on a store that was empty for long: what is planned now has to do later.
    server.analyze().await?;
    claim(&store, session, 0).await?;
    fill(&store, ready, groups).await?;
    let claims = CLAIMS.min(ready / 2 / CLAIM);
    for _ in 0..10 {
        claim(&store, session, 1).await?;
    }
    server.reset().await?;
    let mut times = Vec::new();
    for _ in 0..claims {
        let began = Instant::now();
        claim(&store, session, CLAIM).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let cost = server.cost().await?;
    let each = |milliseconds: f64| milliseconds / claims as f64;
    println!(
        "| {ready} | {groups} | {:.3} ms | {:.3} ms | {:.1} | {:.2} ms |",
        each(cost.milliseconds),
        each(cost.looking),
        cost.calls as f64 / claims as f64,
        times[claims / 2].as_secs_f64() * 1000.0
    );
    Ok(())
}

async fn session(store: &PostgresStore) -> Result<SessionId> {
    let open = Write::OpenSession(OpenSession::new("bench", std::time::Duration::from_secs(3600)));
    match store.apply(vec![open]).await?.pop() {
        Some(Outcome::SessionOpened(session)) => Ok(session),
        other => bail!("no session was opened: {other:?}"),
    }
}

/// Claims, and checks that it got what it asked for.
async fn claim(store: &PostgresStore, session: SessionId, tasks: usize) -> Result<()> {
    let claim = Write::Claim(Claim::any(session, tasks.max(1)));
    match store.apply(vec![claim]).await?.pop() {
        Some(Outcome::Claimed(claimed)) if claimed.tasks.len() == tasks => Ok(()),
        other => bail!("a claim of {tasks} answered {other:?}"),
    }
}

async fn fill(store: &Arc<PostgresStore>, tasks: usize, groups: usize) -> Result<()> {
    let mut left = tasks;
    while left > 0 {
        let mut under_way = Vec::new();
        for _ in 0..AT_ONCE {
            let count = BATCH.min(left);
            left -= count;
            let writes = (0..count).map(|number| submit(number, groups)).collect::<Result<Vec<_>>>()?;
            let store = Arc::clone(store);
            under_way.push(tokio::spawn(async move { store.apply(writes).await }));
        }
        for one in under_way {
            one.await.context("a submit came to nothing")??;
        }
    }
    Ok(())
}

fn submit(number: usize, groups: usize) -> Result<Write> {
    let mut new = NewTask::new("mail")?;
    new.payload = vec![b'x'; 100].into();
    new.group = if groups > 1 { Some(Name::new(format!("tenant {}", number % groups))?) } else { None };
    Ok(Write::Submit(Box::new(new)))
}
