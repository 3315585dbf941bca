//! Round trips of tasks in very many groups, with and without limits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bench_protocol::{Measurement, Order, Request, now};
use onward::limits::{LimitScope, Rate, SetLimit};
use onward::{Engine, Name};

use crate::open::{engine, open_store};
use crate::round_trips::{KIND, PlaceOrder, Seen, register};
use crate::running;

/// One group in this many has used up its limit, where the row has such groups.
const ONE_OF: usize = 10;

/// The number of waiting tasks in each such group.
const HELD_BACK: usize = 100;

/// The limits that the settings of the row ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limits {
    NoGroups,
    Groups,
    Limits,
    Saturated,
}

/// Measures round trips: each submitter submits a task and awaits it.
pub(crate) async fn round_trips(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let limits = match request.settings.as_str() {
        "no groups" => Limits::NoGroups,
        "groups" => Limits::Groups,
        "limits" => Limits::Limits,
        "saturated" => Limits::Saturated,
        other => bail!("there are no settings `{other}`"),
    };
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&engine, &seen);
    set_limits(&engine, limits).await?;
    let running = running::start(&engine);
    if limits == Limits::Saturated {
        saturate(&engine, row.groups, row.payload_bytes).await?;
    }
    let groups = Arc::new(groups(row.groups, limits)?);
    let before = opened.commits();
    let started = now();
    let all: Vec<_> = (0..row.submitters)
        .map(|submitter| {
            let numbers = (submitter..row.count).step_by(row.submitters);
            tokio::spawn(submitter_of(numbers, engine.clone(), Arc::clone(&groups), row.payload_bytes))
        })
        .collect();
    for submitter in all {
        submitter.await??;
    }
    let elapsed = started.elapsed();
    let commits = opened.commit_sizes(&before, row.count);
    running::stop(&engine, running).await?;
    let mut measurement = Measurement::of(row.count as f64 / elapsed.as_secs_f64());
    measurement.lost = seen.ledger.lost(row.count);
    measurement.duplicated = seen.ledger.duplicated();
    let completed = (row.count as u64).saturating_sub(measurement.lost);
    Ok(Measurement { commits, ..measurement }.observed("completed", completed))
}

async fn set_limits(engine: &Engine, limits: Limits) -> Result<()> {
    if !matches!(limits, Limits::Limits | Limits::Saturated) {
        return Ok(());
    }
    let rate = Rate { tasks: 1_000_000, per: Duration::from_secs(1), burst: 1_000_000 };
    let scopes = [
        LimitScope::All,
        LimitScope::Queue(Name::default_queue()),
        LimitScope::Kind(Name::new(KIND)?),
        LimitScope::Groups("tenant-".to_owned()),
    ];
    for scope in scopes {
        engine.set_limit(SetLimit::new(scope).concurrency(100_000).rate(rate)).await?;
    }
    let used_up = Rate { tasks: 1, per: Duration::from_secs(24 * 3600), burst: 1 };
    engine.set_limit(SetLimit::new(LimitScope::Groups("full-".to_owned())).rate(used_up)).await?;
    Ok(())
}

/// Uses up the limits of some groups, and lets more of their tasks wait.
async fn saturate(engine: &Engine, groups: usize, bytes: usize) -> Result<()> {
    let order = Order::new(u64::MAX, 0, bytes)?;
    for group in 0..groups / ONE_OF {
        let group = format!("full-{group}");
        for _ in 0..=HELD_BACK {
            engine.submit_with(PlaceOrder(order.clone())).group(&group).await?;
        }
    }
    Ok(())
}

/// Returns the groups of the counted tasks, in turn. Each group has as many tasks as Zipf's law
/// gives it (Zipf, "Human behavior and the principle of least effort", 1949), in an order that
/// repeats.
fn groups(count: usize, limits: Limits) -> Result<Vec<Option<Name>>> {
    if limits == Limits::NoGroups {
        return Ok(vec![None]);
    }
    let count = if limits == Limits::Saturated { count - count / ONE_OF } else { count };
    let mut groups = Vec::new();
    for group in 1..=count {
        let name = Name::new(format!("tenant-{group}"))?;
        groups.extend(std::iter::repeat_n(Some(name), count.div_ceil(group)));
    }
    // The groups are spread by a stride that shares no factor with the length.
    let length = groups.len();
    let stride = (length * 5 / 8..length).find(|stride| gcd(*stride, length) == 1).context("a stride")?;
    Ok((0..length).map(|turn| groups[turn * stride % length].clone()).collect())
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

async fn submitter_of(
    numbers: impl Iterator<Item = usize>,
    engine: Engine,
    groups: Arc<Vec<Option<Name>>>,
    bytes: usize,
) -> Result<()> {
    let template = Order::new(0, 0, bytes)?;
    for number in numbers {
        let submission = engine.submit_with(PlaceOrder(template.numbered(number as u64)));
        let submission = match &groups[number % groups.len()] {
            Some(group) => submission.group(group.as_str()),
            None => submission,
        };
        submission.await?.wait().await?;
    }
    Ok(())
}
