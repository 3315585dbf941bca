//! A store whose tasks are submitted and ended in transactions of the caller. Runs the conformance
//! suite on it, and compares it with the specification.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use onward_store::rusqlite::{Connection, TransactionBehavior};
use onward_store::{
    Clock, Dependency, Durability, NewTask, NotificationReceiver, Outcome, Result, SqliteStore, Store, StoreFuture,
    Submitted, Write,
};
use onward_testkit::{Conditions, Fixture, MemoryFixture, Opening, StoreLocation, model_based};

/// Stores in a file in which each submit, and each end of an attempt, is written in a transaction
/// of the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outbox {
    /// The submitter notifies the store after its commit.
    Notified,
    /// The submitter never notifies the store, and the store never learns that another connection
    /// writes: its index stays in memory.
    Unnotified,
}

#[derive(Debug)]
struct OutboxLocation {
    directory: tempfile::TempDir,
    outbox: Outbox,
}

#[derive(Debug)]
struct OutboxStore {
    store: SqliteStore,
    connection: Mutex<Connection>,
    outbox: Outbox,
    /// True if a receiver listens for ended tasks. The notification of a caller's commit does not
    /// name the tasks that ended.
    has_receivers: AtomicBool,
}

impl Fixture for Outbox {
    fn location(&self) -> Box<dyn StoreLocation> {
        let directory = tempfile::tempdir().expect("a directory can be made");
        Box::new(OutboxLocation { directory, outbox: *self })
    }
}

impl StoreLocation for OutboxLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let clock: Arc<dyn Clock> = conditions.clock.clone();
        let path = self.directory.path().join("onward.db");
        let outbox = self.outbox;
        let options =
            SqliteStore::options().durability(Durability::Normal).payload_limit(conditions.payload_limit).clock(clock);
        Box::pin(async move {
            let store = options.open(&path).await.expect("a store opens");
            let connection = Connection::open(&path).expect("the file opens twice");
            let sql = "PRAGMA synchronous = NORMAL; CREATE TABLE IF NOT EXISTS shop_order (tasks INTEGER)";
            connection.execute_batch(sql).expect("the caller has its table");
            Arc::new(OutboxStore {
                store,
                connection: Mutex::new(connection),
                outbox,
                has_receivers: AtomicBool::new(false),
            }) as Arc<dyn Store>
        })
    }
}

impl OutboxStore {
    /// Submits tasks in a transaction of the caller, together with a row of the caller.
    fn submit(&self, tasks: &[NewTask]) -> Result<Vec<Submitted>> {
        let mut connection = self.connection.lock().expect("no test panics while it holds this");
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("INSERT INTO shop_order VALUES (?)", [tasks.len()])?;
        let submitted = self.store.submit_in(&transaction, tasks)?;
        transaction.commit()?;
        Ok(match self.outbox {
            Outbox::Notified => submitted.committed(),
            Outbox::Unnotified => {
                let answer = submitted.submitted().to_vec();
                std::mem::forget(submitted);
                answer
            }
        })
    }

    /// Writes as much as possible in transactions of the caller. A call is one commit, and the
    /// events of its submissions come before its changes. So a call that only submits is written in
    /// such a transaction as a whole. Of any other call only the leading submits without keys,
    /// dependencies and parents are, which changes nothing else. Positions in a batch must stay
    /// those of a single write.
    async fn write(&self, mut writes: Vec<Write>) -> Result<Vec<Outcome>> {
        let is_one = writes.len() == 1;
        if is_one && writes.iter().all(ends_attempts) && !self.has_receivers.load(Ordering::Relaxed) {
            return self.finish(writes);
        }
        if let Some(tasks) = submits(&writes).filter(|tasks| is_one || !tasks.iter().any(names_positions)) {
            return self.write_submits(writes, &tasks).await;
        }
        let plain =
            writes.iter().take_while(|write| matches!(write, Write::Submit(task) if stands_alone(task))).count();
        let others = writes.split_off(plain);
        let tasks = submits(&writes).unwrap_or_default();
        let mut outcomes = self.write_submits(writes, &tasks).await?;
        outcomes.extend(self.store.apply(others).await?);
        Ok(outcomes)
    }

    /// Ends attempts in a transaction of the caller, together with a row of the caller. A rejection
    /// leaves neither.
    fn finish(&self, writes: Vec<Write>) -> Result<Vec<Outcome>> {
        let mut connection = self.connection.lock().expect("no test panics while it holds this");
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("INSERT INTO shop_order VALUES (0)", [])?;
        let applied = match self.store.apply_in(&transaction, writes) {
            Ok(applied) => applied,
            Err(error) => {
                transaction.rollback()?;
                return error.refusal().map(|refusal| vec![Outcome::Refused(refusal.clone())]).ok_or(error);
            }
        };
        transaction.commit()?;
        Ok(match self.outbox {
            Outbox::Notified => applied.committed(),
            Outbox::Unnotified => {
                let answer = applied.outcomes().to_vec();
                std::mem::forget(applied);
                answer
            }
        })
    }

    /// Submits tasks in a transaction of the caller. If that is rejected, the store must reject the
    /// writes too; its reply has the refusal as a value.
    async fn write_submits(&self, writes: Vec<Write>, tasks: &[NewTask]) -> Result<Vec<Outcome>> {
        if tasks.is_empty() {
            return self.store.apply(writes).await;
        }
        match self.submit(tasks) {
            Ok(submitted) => Ok(outcomes(&writes, submitted)),
            Err(error) if error.is_invalid() => {
                let outcomes = self.store.apply(writes).await?;
                let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_));
                assert!(outcomes.iter().any(is_refused), "{error}, but the store itself: {outcomes:?}");
                Ok(outcomes)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns whether a write ends an attempt, possibly with other writes that belong to it.
fn ends_attempts(write: &Write) -> bool {
    match write {
        Write::Complete { .. }
        | Write::Fail { .. }
        | Write::Release { .. }
        | Write::AwaitChildren { .. }
        | Write::ConfirmCancel { .. }
        | Write::AwaitCompletion { .. }
        | Write::CompleteExternally { .. } => true,
        Write::All(writes) => {
            let belongs =
                |write: &Write| ends_attempts(write) || matches!(write, Write::Submit(_) | Write::Report { .. });
            writes.iter().any(ends_attempts) && writes.iter().all(belongs)
        }
        _ => false,
    }
}

fn stands_alone(task: &NewTask) -> bool {
    task.unique.is_none() && task.depends_on.is_empty() && task.parent.is_none() && task.aggregate.is_none()
}

fn names_positions(task: &NewTask) -> bool {
    task.depends_on.tasks.iter().any(|dependency| matches!(dependency, Dependency::Position(_)))
}

/// Returns the tasks of writes that only submit, or `None` if a write does something else.
fn submits(writes: &[Write]) -> Option<Vec<NewTask>> {
    let mut tasks = Vec::new();
    for write in writes {
        match write {
            Write::Submit(task) => tasks.push(NewTask::clone(task)),
            // A nested `All` is left to the store, which rejects it.
            Write::All(writes) if writes.iter().all(|write| matches!(write, Write::Submit(_))) => {
                tasks.extend(submits(writes)?);
            }
            _ => return None,
        }
    }
    Some(tasks)
}

/// Returns the results of submits as the outcomes of the writes that contained them.
fn outcomes(writes: &[Write], submitted: Vec<Submitted>) -> Vec<Outcome> {
    let mut submitted = submitted.into_iter().map(Outcome::Submitted);
    let outcome = |write: &Write| match write {
        Write::All(writes) => Outcome::All(submitted.by_ref().take(writes.len()).collect()),
        _ => submitted.next().expect("every task has an outcome"),
    };
    writes.iter().map(outcome).collect()
}

impl onward_store::StoreDecorator for OutboxStore {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(self.write(writes))
    }

    fn notifications(&self) -> NotificationReceiver {
        self.has_receivers.store(true, Ordering::Relaxed);
        self.store.notifications()
    }
}

mod notified {
    onward_testkit::conformance!(crate::outbox::Outbox::Notified);
}

/// Shows: T1, T22
#[test]
fn submits_and_ends_in_callers_transactions_agree_with_the_specification() {
    model_based::run(&MemoryFixture, &Outbox::Notified, crate::model_based::SOME);
}

/// Shows: T1, T22
#[test]
fn submits_and_ends_in_callers_transactions_agree_with_the_specification_while_the_index_is_in_memory() {
    model_based::run(&MemoryFixture, &Outbox::Unnotified, crate::model_based::SOME);
}
