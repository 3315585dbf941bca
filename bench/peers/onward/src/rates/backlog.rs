//! The tasks that wait in the queues before the first arrival.

use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Order, Row, queue_name};
use onward::task::When;
use onward::{Engine, Name, NewTask, Task};
use serde::{Deserialize, Serialize};

use crate::round_trips::KIND;

/// The number of tasks in one commit while the queues are filled.
const CHUNK: usize = 4096;

/// The duration of a runnable task of the backlog.
const TAKES: Duration = Duration::from_millis(1);

/// A kind without a handler.
const UNSERVED: &str = "unserved";

/// A runnable task of the backlog.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Slow(Order);

impl Task for Slow {
    const KIND: &'static str = "slow";
    type Output = ();
}

/// Registers the handler of a runnable backlog.
pub(crate) fn register(engine: &Engine) {
    engine.register(|Slow(_), _context| async {
        tokio::time::sleep(TAKES).await;
        Ok(())
    });
}

/// Fills the queues. Tasks that do not run are spread equally; those that run are all in the queue
/// of the least weight.
pub(crate) async fn fill(engine: &Engine, row: &Row) -> Result<()> {
    let weights = row.weights()?;
    // The number is beyond every ledger, so that tasks of a backlog do not count as those of the
    // row.
    let order = Order::new(u64::MAX, 0, row.payload_bytes)?.to_json()?;
    let task = |kind: &str, weight: u32| {
        let queue = Name::new(queue_name(weight))?;
        anyhow::Ok(NewTask { queue, payload: order.clone().into(), ..NewTask::new(kind)? })
    };
    for weight in &weights {
        submit(engine, task(UNSERVED, *weight)?, row.backlog.unserved / weights.len()).await?;
        let later = NewTask { when: When::After(Duration::from_secs(3600)), ..task(KIND, *weight)? };
        submit(engine, later, row.backlog.delayed / weights.len()).await?;
    }
    submit(engine, task(Slow::KIND, weights[0])?, row.backlog.runnable).await
}

async fn submit(engine: &Engine, task: NewTask, count: usize) -> Result<()> {
    for first in (0..count).step_by(CHUNK) {
        engine.submit_all(vec![task.clone(); CHUNK.min(count - first)]).await?;
    }
    Ok(())
}
