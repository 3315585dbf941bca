//! What a new store does before anybody asks: it goes through the usual writes and takes them back.
//!
//! SQLite compiles a statement when it is first used, which takes longer than to run it: the first submit, claim and completion
//! together took a millisecond, where later ones take microseconds. A rehearsal does that on the writer's thread while the program is busy with other things.
//! Nothing of it reaches the file, and a store that has work has no time for it.

use std::time::Duration;

use crate::dependency::Dependencies;
use crate::error::Result;
use crate::name::Name;
use crate::outcome::Outcome;
use crate::sqlite::cache::Cache;
use crate::sqlite::core::Core;
use crate::sqlite::index::exists;
use crate::sqlite::log::LogBuffer;
use crate::sqlite::transaction::Transaction;
use crate::sqlite::verbs::microseconds;
use crate::store::Hint;
use crate::task::{Lease, NewTask, OnDuplicate, SessionId, TaskId, Ttl, TtlFrom, UniqueKey, When};
use crate::write::{AfterFailure, Claim, OpenSession, Write};

/// One part of a rehearsal: short, so that whoever comes meanwhile does not wait for long. `None` if something did not go as usual.
pub(super) type Scene = fn(&mut Stage<'_, '_>) -> Option<()>;

/// What is rehearsed, in this order.
pub(super) const SCENES: [Scene; 4] = [lives, failures, dependencies, rarer_options];

/// Where a scene plays: a transaction that is rolled back.
pub(super) struct Stage<'t, 'a> {
    transaction: &'t mut Transaction<'a>,
    kind: Name,
    session: SessionId,
}

impl Core {
    /// Plays one scene, unless others have the file open or there is work to do. What fails is left to whoever does it in earnest.
    pub(super) fn rehearse(&mut self, scene: Scene) {
        if !self.rehearses || !self.is_alone() {
            return;
        }
        if let Err(error) = self.play(scene) {
            tracing::debug!(%error, "a rehearsal of the usual writes did not go well");
        }
    }

    /// Whether it was played to its end.
    fn play(&self, scene: Scene) -> Result<Option<()>> {
        let database = self.connection.database();
        database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let played = self.play_in_transaction(scene);
        database.prepare_cached("ROLLBACK")?.execute([])?;
        played
    }

    fn play_in_transaction(&self, scene: Scene) -> Result<Option<()>> {
        let connection = &self.connection.database();
        if exists(connection, "SELECT EXISTS (SELECT 1 FROM task)")? {
            return Ok(None);
        }
        let mut transaction = Transaction {
            connection,
            cache: &mut Cache::load(connection)?,
            now: self.clock.now(),
            steady: microseconds(self.clock.steady()),
            payload_limit: self.payload_limit,
            memory_tasks: self.memory_tasks,
            process: "",
            log: LogBuffer::default(),
            statistics: rustc_hash::FxHashMap::default(),
            hint: Hint::default(),
            news: None,
            completions: Vec::new(),
            over: std::collections::VecDeque::new(),
        };
        let played = Stage::open(&mut transaction).and_then(|mut stage| scene(&mut stage));
        transaction.finish()?;
        Ok(played)
    }
}

impl<'t, 'a> Stage<'t, 'a> {
    fn open(transaction: &'t mut Transaction<'a>) -> Option<Self> {
        let open = OpenSession::new("rehearsal", Duration::from_secs(1));
        let Outcome::SessionOpened(session) = transaction.write(&Write::OpenSession(open)).ok()? else { return None };
        Some(Self { transaction, kind: Name::new("rehearsal").ok()?, session })
    }

    fn write(&mut self, write: &Write) -> Option<Outcome> {
        self.transaction.write(write).ok()
    }

    fn task(&self) -> NewTask {
        NewTask::of(self.kind.clone())
    }

    fn submit(&mut self, task: NewTask) -> Option<TaskId> {
        let Outcome::Submitted(submitted) = self.write(&Write::Submit(Box::new(task)))? else { return None };
        Some(submitted.id())
    }

    fn claim(&mut self) -> Option<Vec<Lease>> {
        let Outcome::Claimed(claimed) = self.write(&Write::Claim(Claim::any(self.session, 8)))? else { return None };
        Some(claimed.tasks.into_iter().map(|task| task.lease).collect())
    }

    fn complete(&mut self, lease: Lease) -> Option<Outcome> {
        self.write(&Write::Complete { lease, result: None })
    }
}

/// Tasks are submitted, one and several, and completed, with a result and without.
fn lives(stage: &mut Stage<'_, '_>) -> Option<()> {
    stage.submit(stage.task())?;
    let both = [stage.task(), stage.task()].map(|task| Write::Submit(Box::new(task)));
    stage.write(&Write::All(both.into()))?;
    for (number, lease) in stage.claim()?.into_iter().enumerate() {
        let result = (number == 0).then(|| bytes::Bytes::from_static(b"done"));
        stage.write(&Write::Complete { lease, result })?;
    }
    Some(())
}

/// Attempts fail in every way, or are given back.
fn failures(stage: &mut Stage<'_, '_>) -> Option<()> {
    let again = |after, hold| AfterFailure::Retry { after, uses_attempt: true, hold };
    let ways = [
        Some(again(Duration::ZERO, true)),
        Some(again(Duration::from_secs(1), false)),
        Some(AfterFailure::Dead),
        Some(AfterFailure::Fail),
        None,
    ];
    for _ in &ways {
        stage.submit(stage.task())?;
    }
    for (lease, way) in stage.claim()?.into_iter().zip(ways) {
        stage.write(&match way {
            Some(next) => Write::Fail { lease, error: "rehearsed".to_owned(), next },
            None => Write::Release { lease, after: Duration::ZERO },
        })?;
    }
    stage.write(&Write::RenewSession { session: stage.session }).map(drop)
}

/// Tasks wait for others, and are parents and children.
fn dependencies(stage: &mut Stage<'_, '_>) -> Option<()> {
    let (first, second) = (stage.submit(stage.task())?, stage.submit(stage.task())?);
    stage.submit(NewTask { depends_on: Dependencies::on([first, second]), ..stage.task() })?;
    stage.submit(NewTask { parent: Some(first), ..stage.task() })?;
    for _ in 0..2 {
        for lease in stage.claim()? {
            stage.complete(lease)?;
            stage.transaction.flush_completions().ok()?;
        }
    }
    Some(())
}

/// A key, a delay, a time to live, tags, a group.
fn rarer_options(stage: &mut Stage<'_, '_>) -> Option<()> {
    let unique = UniqueKey { key: "rehearsal".to_owned(), on_duplicate: OnDuplicate::Skip, keep_for: Duration::ZERO };
    for _ in 0..2 {
        stage.submit(NewTask { unique: Some(unique.clone()), ..stage.task() })?;
    }
    let ttl = Ttl { duration: Duration::from_secs(1), from: TtlFrom::Submission };
    stage.submit(NewTask { when: When::After(Duration::from_secs(1)), ttl: Some(ttl), ..stage.task() })?;
    let tags = [("rehearsal", "")].into_iter().collect();
    stage.submit(NewTask { tags, group: Some(stage.kind.clone()), ..stage.task() })?;
    for lease in stage.claim()? {
        stage.complete(lease)?;
    }
    stage.transaction.write_tags().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::store::SqliteStore;
    use crate::store::Store as _;

    fn rehearse_all(core: &mut Core) {
        for scene in SCENES {
            core.rehearse(scene);
        }
    }

    #[tokio::test]
    async fn a_rehearsal_leaves_nothing() {
        let store = SqliteStore::options().open_in_memory().await.unwrap();
        rehearse_all(&mut store.core());
        assert_eq!((store.queues().await.unwrap(), store.sessions().await.unwrap()), (Vec::new(), Vec::new()));
    }

    #[tokio::test]
    async fn every_scene_is_played_to_its_end() {
        let store = SqliteStore::options().open_in_memory().await.unwrap();
        let core = store.core();
        assert_eq!(SCENES.map(|scene| core.play(scene).unwrap()), [Some(()); SCENES.len()]);
    }

    #[tokio::test]
    async fn a_first_life_finds_its_statements_prepared() {
        let store = SqliteStore::options().open_in_memory().await.unwrap();
        rehearse_all(&mut store.core());
        let prepared = store.core().connection.statements();
        let open = OpenSession::new("worker", Duration::from_secs(10));
        let submit = Write::Submit(Box::new(NewTask::new("mail").unwrap()));
        let outcome = store.apply(vec![Write::OpenSession(open), submit]).await.unwrap().remove(0);
        let Outcome::SessionOpened(session) = outcome else { panic!("{outcome:?}") };
        let outcome = store.apply(vec![Write::Claim(Claim::any(session, 1))]).await.unwrap().remove(0);
        let Outcome::Claimed(claimed) = outcome else { panic!("{outcome:?}") };
        let complete = Write::Complete { lease: claimed.tasks[0].lease, result: None };
        assert_eq!(store.apply(vec![complete]).await.unwrap(), [Outcome::Done]);
        assert_eq!(store.core().connection.statements(), prepared);
    }

    #[tokio::test]
    async fn a_store_with_work_to_do_does_not_rehearse() {
        let store = SqliteStore::options().open_in_memory().await.unwrap();
        store.apply(vec![Write::Submit(Box::new(NewTask::new("mail").unwrap()))]).await.unwrap();
        assert_eq!(store.core().play(lives).unwrap(), None);
    }
}
