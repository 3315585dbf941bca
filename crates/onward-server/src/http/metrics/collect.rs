//! Collects the metrics of the store and the server.

use onward_store::{Error, KindStatistics, LimitRecord, QueueRecord, StoreReads as _, Timestamp};

use super::table::{ATTEMPTS, ENDED, LIMIT_RUNNING, OLDEST, PAUSED, REQUESTS, RUN, STREAMS, TASKS, WAIT, WORKERS};
use super::text::Samples;
use crate::http::server::Server;
use crate::http::wire::scope_text;

/// Returns all metrics as a text. It reads the store, so its cost is that of an overview.
///
/// # Errors
/// Returns the store's error if it could not be read.
pub(crate) async fn metrics_text(server: &Server) -> Result<String, Error> {
    let store = &server.store;
    let now = store.clock().now();
    let mut metrics = of_queues(&store.queues().await?, now);
    metrics.extend(of_kinds(&store.statistics().await?));
    metrics.push(of_limits(&store.limits().await?));
    metrics.push(alone(WORKERS, as_number(store.sessions().await?.len() as u64)));
    let mut requests = Samples::new(REQUESTS);
    server.request_counts.iter().for_each(|(class, count)| requests.add(0, &[class], as_number(count)));
    metrics.push(requests);
    metrics.push(alone(STREAMS, as_number(server.limits.streams() as u64)));
    let mut text = String::new();
    metrics.iter().for_each(|samples| samples.write(&mut text));
    Ok(text)
}

fn of_queues(queues: &[QueueRecord], now: Timestamp) -> Vec<Samples> {
    let (mut tasks, mut paused) = (Samples::new(TASKS), Samples::new(PAUSED));
    let mut oldest = Samples::new(OLDEST).largest();
    for (number, queue) in queues.iter().enumerate() {
        let name = queue.name.as_str();
        let states = [
            ("blocked", queue.blocked),
            ("scheduled", queue.scheduled),
            ("waiting", queue.waiting),
            ("running", queue.running),
        ];
        states.into_iter().for_each(|(state, count)| tasks.add(number, &[name, state], as_number(count)));
        paused.add(number, &[name], if queue.paused { 1.0 } else { 0.0 });
        let age = queue.oldest_waiting.map_or(0, |since| now.as_microseconds() - since.as_microseconds());
        oldest.add(number, &[name], as_number(age.max(0).unsigned_abs()) / 1e6);
    }
    vec![tasks, oldest, paused]
}

fn of_kinds(kinds: &[KindStatistics]) -> Vec<Samples> {
    let (mut ended, mut attempts) = (Samples::new(ENDED), Samples::new(ATTEMPTS));
    let (mut wait, mut run) = (Samples::new(WAIT), Samples::new(RUN));
    for (number, of) in kinds.iter().enumerate() {
        let (kind, counts) = (of.kind.as_str(), of.ended);
        let states = [
            ("completed", counts.completed),
            ("failed", counts.failed),
            ("dead", counts.dead),
            ("cancelled", counts.cancelled),
            ("expired", counts.expired),
        ];
        states.into_iter().for_each(|(state, count)| ended.add(number, &[kind, state], as_number(count)));
        attempts.add(number, &[kind], as_number(of.attempts));
        wait.add(number, &[kind], of.wait.as_secs_f64());
        run.add(number, &[kind], of.run.as_secs_f64());
    }
    vec![ended, attempts, wait, run]
}

fn of_limits(limits: &[LimitRecord]) -> Samples {
    let mut running = Samples::new(LIMIT_RUNNING);
    for (number, limit) in limits.iter().enumerate() {
        running.add(number, &[&scope_text(&limit.scope)], as_number(limit.running.unwrap_or_default()));
    }
    running
}

fn alone(metric: &'static super::table::Metric, value: f64) -> Samples {
    let mut samples = Samples::new(metric);
    samples.add(0, &[], value);
    samples
}

#[expect(clippy::cast_precision_loss, reason = "the format has floats, and counts above 2^53 do not occur")]
fn as_number(count: u64) -> f64 {
    count as f64
}
