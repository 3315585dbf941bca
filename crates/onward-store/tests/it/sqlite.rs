//! Runs the conformance suite on the SQLite store: in memory, on a file, and behind a decorator.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward_store::{
    AfterTurn, Changes, Claim, Clock, Durability, Lease, NewTask, NotificationReceiver, Outcome, Read, ReadReply,
    SqliteOptions, SqliteReader, SqliteStore, Store, StoreFuture, StoreInfo, StoreReads, TaskFilter, TaskId, Turn,
    Write,
};
use onward_testkit::{Conditions, Fixture, Opening, StoreLocation, close_sessions};

/// Stores in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InMemory;

/// Stores in a file of a directory of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFile(pub(crate) Durability);

/// The number of tasks that wait in memory in the fixtures with few. It is so small that each store
/// has some tasks in memory and some in its tables.
const FEW: usize = 2;

/// Stores in memory that move all but a few tasks to the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InMemoryFewTasks;

/// Stores in a file that move all but a few tasks to the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFileFewTasks;

#[derive(Debug)]
struct MemoryLocation {
    options: SqliteOptions,
    store: Option<Arc<SqliteStore>>,
}

#[derive(Debug)]
struct FileLocation {
    options: SqliteOptions,
    directory: tempfile::TempDir,
}

impl Fixture for InMemory {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(MemoryLocation { options: SqliteStore::options(), store: None })
    }
}

impl Fixture for InMemoryFewTasks {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(MemoryLocation { options: SqliteStore::options().memory_tasks(FEW), store: None })
    }
}

impl Fixture for InFile {
    fn location(&self) -> Box<dyn StoreLocation> {
        file_location(SqliteStore::options().durability(self.0))
    }
}

impl Fixture for InFileFewTasks {
    fn location(&self) -> Box<dyn StoreLocation> {
        file_location(SqliteStore::options().durability(Durability::Normal).memory_tasks(FEW))
    }
}

fn file_location(options: SqliteOptions) -> Box<dyn StoreLocation> {
    Box::new(FileLocation { options, directory: tempfile::tempdir().expect("a directory can be made") })
}

/// Returns the options under the conditions of a case.
fn under(options: &SqliteOptions, conditions: &Conditions) -> SqliteOptions {
    options.clone().payload_limit(conditions.payload_limit).clock(conditions.clock.clone())
}

impl StoreLocation for MemoryLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let options = under(&self.options, conditions);
        Box::pin(async move {
            if let Some(store) = &self.store {
                close_sessions(&**store).await;
                return Arc::clone(store) as Arc<dyn Store>;
            }
            let store = Arc::new(options.open_in_memory().await.expect("a store in memory opens"));
            self.store = Some(Arc::clone(&store));
            store
        })
    }
}

impl StoreLocation for FileLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let path: PathBuf = self.directory.path().join("onward.db");
        let options = under(&self.options, conditions);
        Box::pin(async move { Arc::new(options.open(path).await.expect("a store opens")) as Arc<dyn Store> })
    }
}

/// Stores on a file that another store of this process also has open. The writes alternate between
/// the two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared;

#[derive(Debug)]
struct SharedLocation(tempfile::TempDir);

/// Two stores on one file, used in turn.
#[derive(Debug)]
struct InTurn {
    stores: [SqliteStore; 2],
    calls: AtomicUsize,
}

impl InTurn {
    fn next(&self) -> &SqliteStore {
        &self.stores[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

impl Drop for InTurn {
    /// Closes the sessions of both stores in the order of their numbers, as one store would.
    fn drop(&mut self) {
        // It uses a thread of its own because it is dropped within a runtime, which must not block.
        let close = || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
            runtime.block_on(close_sessions(&self.stores[0]));
        };
        std::thread::scope(|scope| scope.spawn(close).join().expect("the sessions can be closed"));
    }
}

impl Fixture for Shared {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(SharedLocation(tempfile::tempdir().expect("a directory can be made")))
    }
}

impl StoreLocation for SharedLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let path = self.0.path().join("onward.db");
        let options = under(&SqliteStore::options().durability(Durability::Normal), conditions);
        Box::pin(async move {
            let one = options.clone().open(&path).await.expect("a store opens");
            let other = options.open(&path).await.expect("a store opens twice");
            Arc::new(InTurn { stores: [one, other], calls: AtomicUsize::new(0) }) as Arc<dyn Store>
        })
    }
}

impl onward_store::StoreDecorator for InTurn {
    fn inner(&self) -> &dyn Store {
        self.next()
    }

    fn changes(&self) -> Changes {
        self.stores[0].changes()
    }

    fn notifications(&self) -> NotificationReceiver {
        self.stores[0].notifications()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.stores[0].clock()
    }

    fn info(&self) -> StoreInfo {
        self.stores[0].info()
    }
}

/// Stores in a file whose reads go through a handle that was opened only to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadThroughReader;

#[derive(Debug)]
struct ReaderLocation(tempfile::TempDir);

/// A store whose reads a reader of the same file makes.
#[derive(Debug)]
struct WithReader {
    store: SqliteStore,
    reader: SqliteReader,
}

impl Fixture for ReadThroughReader {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(ReaderLocation(tempfile::tempdir().expect("a directory can be made")))
    }
}

impl StoreLocation for ReaderLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let path = self.0.path().join("onward.db");
        let options = under(&SqliteStore::options().durability(Durability::Normal).memory_tasks(FEW), conditions);
        Box::pin(async move {
            let store = options.clone().open(&path).await.expect("a store opens");
            let reader = options.open_to_read(&path).await.expect("a reader opens");
            Arc::new(WithReader { store, reader }) as Arc<dyn Store>
        })
    }
}

impl onward_store::StoreDecorator for WithReader {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        Store::read(&self.reader, read)
    }
}

mod in_memory {
    onward_testkit::conformance!(ignored crate::sqlite::InMemory);
}

mod in_file {
    onward_testkit::conformance!(ignored crate::sqlite::InFile(onward_store::Durability::Normal));
}

mod in_file_full {
    onward_testkit::conformance!(crate::sqlite::InFile(onward_store::Durability::Full));
}

mod in_memory_few_tasks {
    onward_testkit::conformance!(crate::sqlite::InMemoryFewTasks);
}

mod in_file_read_through_reader {
    onward_testkit::conformance!(ignored crate::sqlite::ReadThroughReader);
}

mod in_file_behind_decorators {
    use onward_testkit::{CodecFixture, FaultyFixture, conformance};

    conformance!(FaultyFixture(CodecFixture(crate::sqlite::InFile(onward_store::Durability::Normal))));
}

/// Without this the suites on few tasks would show nothing.
#[tokio::test]
async fn more_tasks_than_may_wait_in_memory_move_to_the_tables() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let store = SqliteStore::options().memory_tasks(FEW).open(&path).await.unwrap();
    let mut in_tables = Vec::new();
    for _ in 0..=FEW + 1 {
        store.apply(vec![Write::Submit(Box::new(NewTask::new("mail").unwrap()))]).await.unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        let count: usize = connection.query_row("SELECT count(*) FROM ready", [], |row| row.get(0)).unwrap();
        in_tables.push(count);
    }
    assert_eq!(in_tables, [0, 0, 3, 3]);
}

/// A refusal discards the writer's state in memory, and the next write reads it again. That must
/// not cost as much each time.
#[tokio::test]
async fn what_was_read_again_after_a_refusal_moves_to_the_tables_if_it_is_much() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let submit = || Write::Submit(Box::new(NewTask::new("mail").unwrap()));
    store.apply((0..20_000).map(|_| submit()).collect()).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let in_tables = || connection.query_row("SELECT count(*) FROM ready", [], |row| row.get::<_, usize>(0)).unwrap();
    assert_eq!(in_tables(), 0);
    store.apply(vec![Write::All(vec![submit(), Write::Cancel { task: TaskId(999_999) }])]).await.unwrap();
    assert_eq!(in_tables(), 20_000);
}

fn tagged(count: usize) -> NewTask {
    let tags = (0..count).map(|number| (format!("key-{number}"), number.to_string())).collect();
    NewTask { tags, ..NewTask::new("mail").unwrap() }
}

async fn submit(store: &SqliteStore, task: NewTask) {
    store.apply(vec![Write::Submit(Box::new(task))]).await.unwrap();
}

/// The entry of each tag is on another page. If entries were written with the submit, it would
/// write as many pages.
///
/// Shows: T10
#[tokio::test]
async fn a_submit_with_many_tags_writes_few_pages() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("onward.db")).await.unwrap();
    submit(&store, tagged(32)).await;
    let log_bytes = || std::fs::metadata(directory.path().join("onward.db-wal")).unwrap().len();
    let before = log_bytes();
    submit(&store, tagged(32)).await;
    let pages = (log_bytes() - before) / 4096;
    assert!((1..4).contains(&pages), "{pages} pages");
}

/// Shows: T10, T21
#[tokio::test]
async fn tasks_of_a_process_that_was_killed_are_found_by_their_tags() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("onward.db")).await.unwrap();
    submit(&store, tagged(1)).await;
    complete_first(&store).await;
    submit(&store, tagged(1)).await;
    for end in ["", "-wal"] {
        let file = |name: &str| directory.path().join(format!("{name}.db{end}"));
        std::fs::copy(file("onward"), file("as-it-was")).unwrap();
    }
    let after = SqliteStore::open(directory.path().join("as-it-was.db")).await.unwrap();
    let filter = TaskFilter { tags: tagged(1).tags, ..TaskFilter::default() };
    assert_eq!(after.count(filter).await.unwrap(), 2);
}

async fn claim_first(store: &SqliteStore) -> Lease {
    let open = onward_store::OpenSession::new("worker", std::time::Duration::from_secs(10));
    let Outcome::SessionOpened(session) = store.apply(vec![Write::OpenSession(open)]).await.unwrap().remove(0) else {
        panic!("no session")
    };
    let claim = Write::Claim(Claim::any(session, 1));
    let Outcome::Claimed(claimed) = store.apply(vec![claim]).await.unwrap().remove(0) else { panic!("no claim") };
    claimed.tasks[0].lease
}

async fn complete_first(store: &SqliteStore) {
    let complete = Write::Complete { lease: claim_first(store).await, result: None };
    assert_eq!(store.apply(vec![complete]).await.unwrap(), [Outcome::Done]);
}

/// Starts an orchestration with two tags.
async fn started_orchestration(store: &SqliteStore) -> Lease {
    submit(store, NewTask { orchestration: true, ..tagged(2) }).await;
    claim_first(store).await
}

/// Lets an orchestration set one of its tags and remove the other.
async fn change_tags(store: &SqliteStore, lease: Lease) {
    let tags = vec![("key-0".to_owned(), Some("changed".to_owned())), ("key-1".to_owned(), None)];
    let turn = Turn { tags, ..Turn::new(lease, 0, AfterTurn::Park { until: None }) };
    let outcomes = store.apply(vec![Write::Turn(Box::new(turn))]).await.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Turned(_)]), "{outcomes:?}");
}

/// Returns the numbers of tasks found by the changed tag, by its old value, and by the removed tag.
async fn found_by_tags(store: &SqliteStore) -> [u64; 3] {
    let mut found = [0; 3];
    for (found, tag) in found.iter_mut().zip([("key-0", "changed"), ("key-0", "0"), ("key-1", "1")]) {
        let filter = TaskFilter { tags: [tag].into_iter().collect(), ..TaskFilter::default() };
        *found = store.count(filter).await.unwrap();
    }
    found
}

/// Shows: D10, T21
#[tokio::test]
async fn an_orchestration_of_a_process_that_was_killed_is_found_by_the_tags_that_it_had_changed() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("onward.db")).await.unwrap();
    // The tags of the first orchestration are in the tables when it changes them; those of the
    // second are not.
    let first = started_orchestration(&store).await;
    assert_eq!(found_by_tags(&store).await, [0, 1, 1]);
    change_tags(&store, first).await;
    let second = started_orchestration(&store).await;
    change_tags(&store, second).await;
    for end in ["", "-wal"] {
        let file = |name: &str| directory.path().join(format!("{name}.db{end}"));
        std::fs::copy(file("onward"), file("as-it-was")).unwrap();
    }
    let after = SqliteStore::open(directory.path().join("as-it-was.db")).await.unwrap();
    assert_eq!((found_by_tags(&after).await, found_by_tags(&store).await), ([2, 0, 0], [2, 0, 0]));
}

/// Shows: D10
#[tokio::test]
async fn who_shares_a_file_finds_an_orchestration_by_the_tags_that_it_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let one = SqliteStore::open(&path).await.unwrap();
    let first = started_orchestration(&one).await;
    let other = SqliteStore::open(&path).await.unwrap();
    let second = started_orchestration(&one).await;
    assert_eq!(found_by_tags(&other).await, [0, 2, 2]);
    change_tags(&one, first).await;
    change_tags(&one, second).await;
    assert_eq!(found_by_tags(&other).await, [2, 0, 0]);
}

/// The file is also open elsewhere. The rollback of the rejected write starts after the tags of the
/// write before it.
///
/// Shows: T10
#[tokio::test]
async fn a_write_that_is_refused_half_way_leaves_the_tags_of_the_one_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let (one, other) = (SqliteStore::open(&path).await.unwrap(), SqliteStore::open(&path).await.unwrap());
    let submit = || Write::Submit(Box::new(tagged(1)));
    let refused = Write::All(vec![submit(), Write::Cancel { task: TaskId(999) }]);
    one.apply(vec![submit(), refused]).await.unwrap();
    let filter = TaskFilter { tags: tagged(1).tags, ..TaskFilter::default() };
    assert_eq!(other.count(filter).await.unwrap(), 1);
}
