//! The work of a run: tasks, orchestrations with signals, and workflows, with their results.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::testing::ManualClock;
use onward::workflow::template::TemplateFile;
use onward::{Backoff, Context, Engine, Failure, HandlerOptions, NewTask, RetryPolicy, TaskId};
use onward_store::{Clock as _, OnDuplicate, UniqueKey};
use serde_json::{Value, json};

use crate::orchestration_faults::{self as orchestrations, Program};

/// The group whose tasks have a limit, and the limit.
pub(super) const LIMITED: (&str, u32) = ("limited", 2);

/// A workflow with a branch, a join and a condition. Its result has `4 * number`.
const WORKFLOW: &str = r"
steps:
  first: {task: double, with: '${{ input.number }}'}
  left: {task: double, with: '${{ steps.first.result.value }}', depends_on: [first]}
  right: {task: unsteady, with: '${{ steps.first.result.value }}', depends_on: [first]}
  never: {task: double, with: 1, depends_on: [first], if: '${{ input.number < 0 }}'}
  last: {value: '${{ steps.left.result.value }}', depends_on: [left, right]}";

/// The number of tasks of a run of the workflow: itself and the steps that run.
const WORKFLOW_TASKS: u64 = 4;

/// Something to submit.
#[derive(Debug, Clone)]
enum Order {
    Task(Box<NewTask>, u64),
    Orchestration(Program),
    Workflow(u64),
}

/// The acknowledged orders, with the result of each.
pub(super) type Acknowledged = Arc<Mutex<BTreeMap<TaskId, Value>>>;

/// The orders of a client, or the signals that it owes to the orchestrations of another one.
#[derive(Debug, Clone)]
pub(super) struct Work {
    orders: Vec<Order>,
    signals_only: bool,
    acknowledged: Acknowledged,
    orchestrations: Arc<Mutex<Vec<(TaskId, usize)>>>,
    /// The signals still to be sent.
    signals_left: Arc<Mutex<usize>>,
}

impl Work {
    pub(super) fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x776f_726b);
        let mut orders: Vec<Order> = (0..random.usize(4..12)).map(|number| Order::task(number, &mut random)).collect();
        for _ in 0..random.u32(1..3) {
            orders.push(Order::Orchestration(Program::random(random.u64(..))));
        }
        for _ in 0..random.u64(1..3) {
            orders.push(Order::Workflow(random.u64(1..1000)));
        }
        random.shuffle(&mut orders);
        let signals = orders.iter().map(Order::signals).sum();
        Self {
            orders,
            signals_only: false,
            acknowledged: Arc::default(),
            orchestrations: Arc::default(),
            signals_left: Arc::new(Mutex::new(signals)),
        }
    }

    /// Returns the signals of this work. A signal cannot be repeated, so its client must not lose
    /// replies.
    pub(super) fn signals(&self) -> Self {
        Self { signals_only: true, ..self.clone() }
    }

    pub(super) fn acknowledged(&self) -> Acknowledged {
        Arc::clone(&self.acknowledged)
    }

    /// Returns whether every order is acknowledged and every signal sent.
    pub(super) fn is_submitted(&self) -> bool {
        self.acknowledged.lock().unwrap().len() == self.orders.len() && *self.signals_left.lock().unwrap() == 0
    }

    /// Returns the number of tasks that all orders lead to.
    pub(super) fn tasks(&self) -> u64 {
        self.orders.iter().map(Order::tasks).sum()
    }

    /// Submits everything, and repeats what was not acknowledged.
    pub(super) async fn submit(self, engine: &Engine) {
        if self.signals_only {
            return self.send_signals(engine).await;
        }
        engine.add_workflow(TemplateFile::read("shop.yaml", WORKFLOW).unwrap());
        for (number, order) in self.orders.iter().enumerate() {
            let id = loop {
                if let Ok(id) = order.submit(number, engine).await {
                    break id;
                }
            };
            let other = self.acknowledged.lock().unwrap().insert(id, order.result());
            assert!(other.is_none(), "two orders became task {id}");
            if let Order::Orchestration(program) = order {
                self.orchestrations.lock().unwrap().push((id, program.events()));
            }
        }
    }

    async fn send_signals(&self, engine: &Engine) {
        while *self.signals_left.lock().unwrap() > 0 {
            let next = self.orchestrations.lock().unwrap().pop();
            let Some((orchestration, signals)) = next else {
                tokio::task::yield_now().await;
                continue;
            };
            for _ in 0..signals {
                while engine.signal(orchestration, "event", &5).await.is_err() {}
                *self.signals_left.lock().unwrap() -= 1;
            }
        }
    }
}

impl Order {
    fn task(number: usize, random: &mut fastrand::Rng) -> Self {
        let kind = ["double", "unsteady", "slow"][random.usize(0..3)];
        let value = random.u64(1..1000);
        let mut task = NewTask::new(kind).unwrap();
        task.payload = value.to_string().into();
        task.group = random.bool().then(|| LIMITED.0.parse().unwrap());
        task.unique = Some(key(number));
        if random.u8(0..4) == 0 {
            task.when = onward::task::When::After(Duration::from_millis(random.u64(1..20_000)));
        }
        Self::Task(Box::new(task), value)
    }

    fn signals(&self) -> usize {
        if let Self::Orchestration(program) = self { program.events() } else { 0 }
    }

    fn tasks(&self) -> u64 {
        match self {
            Self::Task(..) => 1,
            Self::Orchestration(program) => 1 + program.tasks() as u64,
            Self::Workflow(_) => WORKFLOW_TASKS,
        }
    }

    /// Returns the result that its task must have.
    fn result(&self) -> Value {
        match self {
            Self::Task(_, value) => json!(value * 2),
            Self::Orchestration(program) => json!(program.value()),
            Self::Workflow(value) => json!({"last": value * 4, "never": null}),
        }
    }

    async fn submit(&self, number: usize, engine: &Engine) -> onward::Result<TaskId> {
        match self {
            Self::Task(task, _) => Ok(engine.submit_task((**task).clone()).await?.id()),
            Self::Orchestration(program) => {
                let mut task = NewTask::new("program")?;
                task.orchestration = true;
                task.payload = serde_json::to_vec(program).unwrap().into();
                task.unique = Some(key(number));
                Ok(engine.submit_task(task).await?.id())
            }
            Self::Workflow(value) => {
                let start = engine.start_run("shop").input(&json!({"number": value})).key(number.to_string());
                Ok(start.await?.id)
            }
        }
    }
}

/// Returns the key by which a repeated order is recognized, even after its end.
fn key(number: usize) -> UniqueKey {
    let keep_for = Duration::from_secs(3600 * 24 * 365);
    UniqueKey { key: number.to_string(), on_duplicate: OnDuplicate::Skip, keep_for }
}

/// Registers the handlers of every kind.
pub(super) fn register(engine: &Engine, clock: &Arc<ManualClock>) {
    orchestrations::register(engine);
    engine.add_workflow(TemplateFile::read("shop.yaml", WORKFLOW).unwrap());
    engine.handle("double", |context: Context| async move { doubled(&context) });
    let clock = Arc::clone(clock);
    engine.handle("slow", move |context: Context| {
        let clock = Arc::clone(&clock);
        async move {
            wait(&clock, Duration::from_millis(context.id().0.unsigned_abs() * 1_777 % 8_000)).await;
            doubled(&context)
        }
    });
    let soon = RetryPolicy { attempts: 9, backoff: Backoff::Constant { delay: Duration::from_secs(1) } };
    engine.handle_with("unsteady", HandlerOptions::new().retry(soon), |context: Context| async move {
        if context.attempt() == 1 { Err(Failure::retryable("at first")) } else { doubled(&context) }
    });
}

/// Waits for a time of the store's clock.
async fn wait(clock: &ManualClock, time: Duration) {
    let (until, mut moved) = (clock.steady() + time, clock.moved().unwrap());
    while clock.steady() < until {
        moved.changed().await.unwrap();
    }
}

/// Returns the doubled payload, and the attempt that doubled it.
fn doubled(context: &Context) -> Result<String, Failure> {
    let value: u64 = serde_json::from_slice(context.payload())?;
    Ok(json!({"value": value * 2, "attempt": context.attempt()}).to_string())
}
