//! Orchestrations that the user names by number, or one by its key.

use clap::Args;
use onward_store::{Name, Page, Refusal, Store, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState};

use crate::apply::for_each;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The orchestrations that the user named.
#[derive(Debug, Args)]
pub(crate) struct Orchestrations {
    /// Orchestration numbers
    #[arg(value_name = "ORCHESTRATION", required_unless_present = "key", conflicts_with = "key", value_parser = number)]
    numbers: Vec<TaskId>,
    /// The orchestration with this key, instead of numbers: the live one, else the newest
    #[arg(long)]
    key: Option<String>,
    /// With --key: only of this kind
    #[arg(long, requires = "key")]
    kind: Option<Name>,
}

/// The orchestration that the user named.
#[derive(Debug, Args)]
pub(crate) struct OneOrchestration {
    /// Its number
    #[arg(value_name = "ORCHESTRATION", required_unless_present = "key", conflicts_with = "key", value_parser = number)]
    number: Option<TaskId>,
    /// The orchestration with this key, instead of a number: the live one, else the newest
    #[arg(long)]
    key: Option<String>,
    /// With --key: only of this kind
    #[arg(long, requires = "key")]
    kind: Option<Name>,
}

/// Reads a number. The error suggests `--key`, because other text is most likely a key.
fn number(text: &str) -> Result<TaskId, String> {
    text.parse::<TaskId>().map_err(|error| format!("{error}; one that has the key is named by --key '{text}'"))
}

impl Orchestrations {
    /// Applies `action` to each of them, in the order in which they were named, even after one that
    /// is missing or was refused (see [`apply::for_each`](crate::apply::for_each)).
    ///
    /// # Errors
    /// Returns an error if one of them does not exist or is not an orchestration, and the errors of
    /// `action`.
    pub(super) async fn for_each(
        self,
        options: &GlobalOptions,
        store: &dyn Store,
        action: impl AsyncFn(TaskRecord) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let Self { numbers, key, kind } = self;
        let named = match key {
            Some(key) => vec![OneOrchestration::either(None, Some(key), kind)],
            None => numbers.into_iter().map(|number| OneOrchestration::either(Some(number), None, None)).collect(),
        };
        for_each(named, options, async |one| action(one.record(store).await?).await).await
    }
}

impl OneOrchestration {
    /// Names an orchestration by its number or, without one, by its key.
    pub(super) fn either(number: Option<TaskId>, key: Option<String>, kind: Option<Name>) -> Self {
        Self { number, key, kind }
    }

    /// Returns its record.
    ///
    /// # Errors
    /// Returns an error if it does not exist or is not an orchestration.
    pub(super) async fn record(self, store: &dyn Store) -> anyhow::Result<TaskRecord> {
        match (self.number, self.key) {
            (Some(number), _) => with_number(store, number).await,
            (None, key) => with_key(store, key.unwrap_or_default(), self.kind).await,
        }
    }
}

/// Checks that a number belongs to an orchestration.
///
/// # Errors
/// Returns an error if no task has the number, or the task is not an orchestration.
pub(super) async fn check_is_orchestration(store: &dyn Store, number: TaskId) -> anyhow::Result<()> {
    with_number(store, number).await.map(drop)
}

async fn with_number(store: &dyn Store, number: TaskId) -> anyhow::Result<TaskRecord> {
    let record = store.task(number).await?.ok_or(Refusal::TaskNotFound(number))?;
    if record.orchestration { Ok(record) } else { Err(not_an_orchestration(&record)) }
}

fn not_an_orchestration(record: &TaskRecord) -> anyhow::Error {
    let TaskRecord { id, kind, .. } = record;
    anyhow::anyhow!("task {id} of the kind `{kind}` is not an orchestration; see `onward task show {id}`")
}

/// Returns the live orchestration with a key, or the newest if none is live.
async fn with_key(store: &dyn Store, key: String, kind: Option<Name>) -> anyhow::Result<TaskRecord> {
    let all = TaskFilter { kind, key: Some(key.clone()), with_payload: true, ..TaskFilter::default() };
    let live = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
    let mut other = None;
    for filter in [TaskFilter { states: live, ..all.clone() }, all] {
        for record in store.tasks(filter, Page::default()).await?.tasks {
            if record.orchestration {
                return Ok(record);
            }
            other.get_or_insert(record);
        }
    }
    Err(match other {
        Some(record) => not_an_orchestration(&record),
        None => anyhow::anyhow!(
            "no orchestration has the key `{key}`; `onward orchestration list` lists them, and it may have been pruned from history"
        ),
    })
}
