//! Bits flipped in a closed store, one at a time.
//!
//! If the pages of the file have checksums, damage is never read as valid data, whichever bit
//! flips.
//!
//! Without checksums, SQLite's format detects a part of the damage: in the structure of each page,
//! in the header of the file, and in rows that contradict another table. A flip within a value (a
//! payload, a time, a counter) can give another valid value. There this test shows that nothing
//! panics and that a program can act on every error. A flip in a page's structure is an error, a
//! finding of the check, or harmless. The test prints the number of undetected flips.
//!
//! In the line for `cargo xtask soak` a detected flip counts as acknowledged and a harmless one as
//! recovered. A flip in a page's structure that was read as valid data counts as lost.
//!
//! `ONWARD_FLIPS` sets the number of flipped bits in each page (default: 8). `ONWARD_SEED` selects
//! them (default: random).

use std::path::Path;
use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, Durability, Error, EventCursor, NewTask, OpenSession, Outcome, Page, Scope, SqliteStore,
    Store, StoreReads, TaskFilter, UniqueKey, When, Write,
};
use onward_testkit::soak::{self, Tally};

const PAGE_BYTES: usize = 4096;
/// The length of the header at the beginning of the file's first page.
const FILE_HEADER: usize = 100;
/// The length of the header of a B-tree page.
const PAGE_HEADER: usize = 8;

#[tokio::test]
async fn a_flipped_bit_never_panics_and_in_the_structure_of_a_page_it_is_seen_or_harmless() {
    let seen = flip_bits(Layout::Plain).await;
    let seed = seen.tally.seed;
    assert_eq!(
        seen.lost,
        [],
        "ONWARD_SEED={seed}: page and byte of flips after which other data was read without a word"
    );
    assert!(seen.tally.acknowledged > 0, "no flip was noticed at all");
}

/// Shows: T21
#[tokio::test]
async fn where_pages_have_checksums_no_flipped_bit_is_read_as_data() {
    let seen = flip_bits(Layout::Checksums).await;
    let seed = seen.tally.seed;
    assert_eq!(
        (&*seen.lost, seen.unseen),
        (&[][..], 0),
        "ONWARD_SEED={seed}: page and byte of flips that nobody noticed"
    );
    assert!(seen.tally.acknowledged > 0, "no flip was noticed at all");
}

/// The layout of the file: with or without checksums of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Plain,
    Checksums,
}

/// Flips bits of a store, one at a time, and reads it after each flip.
async fn flip_bits(layout: Layout) -> Seen {
    let seed = soak::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    make_store(&path, layout).await;
    let whole = std::fs::read(&path).unwrap();
    let truth = read_everything(&path).await.expect("the whole store is read");
    let mut seen = Seen { tally: Tally { seed, ..Tally::default() }, ..Seen::default() };
    for (page, offset) in places(whole.len(), layout, &mut random) {
        let mut bytes = whole.clone();
        bytes[page * PAGE_BYTES + offset] ^= 1 << random.u8(0..8);
        seen.count(look_at(&bytes, &truth).await, page, offset);
    }
    println!("unseen={} {}", seen.unseen, seen.tally);
    seen
}

/// The result of a flip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Reading returned an error, or the check found the damage.
    Refused,
    /// All data was read unchanged.
    Harmless,
    /// Other data was read, and the damage was not detected.
    Wrong,
}

#[derive(Debug, Default)]
struct Seen {
    tally: Tally,
    /// Undetected flips of values.
    unseen: u64,
    /// The places of undetected flips that the format could detect.
    lost: Vec<(usize, usize)>,
}

impl Seen {
    fn count(&mut self, verdict: Verdict, page: usize, offset: usize) {
        self.tally.attempted += 1;
        match verdict {
            Verdict::Refused => self.tally.acknowledged += 1,
            Verdict::Harmless => self.tally.recovered += 1,
            Verdict::Wrong if is_structure(page, offset) => {
                self.tally.lost += 1;
                self.lost.push((page, offset));
            }
            Verdict::Wrong => self.unseen += 1,
        }
    }
}

/// Returns the places to flip: in each page a byte of its header, and bytes anywhere. With
/// checksums, also each byte of the file's header.
fn places(bytes: usize, layout: Layout, random: &mut fastrand::Rng) -> Vec<(usize, usize)> {
    let flips = soak::number("ONWARD_FLIPS").unwrap_or(8).max(1);
    let header = if layout == Layout::Checksums { FILE_HEADER } else { 0 };
    let mut places: Vec<_> = (0..header).map(|offset| (0, offset)).collect();
    for page in 0..bytes / PAGE_BYTES {
        let start = if page == 0 { FILE_HEADER } else { 0 };
        places.push((page, start + random.usize(0..PAGE_HEADER)));
        places.extend((1..flips).map(|_| (page, random.usize(0..PAGE_BYTES))));
    }
    places
}

/// Returns whether a byte belongs to the structure of a page. The header of the file does not
/// count: most of it (change counters, the version of SQLite that wrote it) has no meaning for the
/// data.
fn is_structure(page: usize, offset: usize) -> bool {
    let start = if page == 0 { FILE_HEADER } else { 0 };
    (start..start + PAGE_HEADER).contains(&offset)
}

async fn look_at(bytes: &[u8], truth: &str) -> Verdict {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    std::fs::write(&path, bytes).unwrap();
    match read_everything(&path).await {
        Ok(read) if read == truth => Verdict::Harmless,
        Ok(read) if read == FINDING => Verdict::Refused,
        Ok(_) => Verdict::Wrong,
        Err(error) => {
            let named = error.is_corrupt() || error.is_version() || error.is_read_only();
            assert!(named, "a damaged store answered with an error of another kind: {error:?}");
            assert!(error.is_version() || !error.to_string().is_empty());
            Verdict::Refused
        }
    }
}

const FINDING: &str = "the check found something";

/// Returns all data of a store, as text.
async fn read_everything(path: &Path) -> Result<String, Error> {
    let store = SqliteStore::options().durability(Durability::Memory).open(path).await?;
    let filter = TaskFilter { with_payload: true, ..TaskFilter::default() };
    let tasks = store.tasks(filter, Page { before: None, limit: 1000 }).await?;
    let events = store.events(EventCursor::START, 1000).await?;
    let (queues, statistics) = (store.queues().await?, store.statistics().await?);
    let (sessions, pauses) = (store.sessions().await?, store.pauses().await?);
    let report = store.check().await?;
    if !report.integrity.is_empty() || !report.consistency.is_empty() {
        return Ok(FINDING.to_owned());
    }
    Ok(format!("{tasks:?}{events:?}{queues:?}{statistics:?}{sessions:?}{pauses:?}"))
}

/// Makes a small store with data in most of its tables.
async fn make_store(path: &Path, layout: Layout) {
    let options = SqliteStore::options().durability(Durability::Memory).page_checksums(layout == Layout::Checksums);
    let store = options.open(path).await.unwrap();
    let open = OpenSession::new("worker", Duration::from_secs(10));
    let outcomes = store.apply(vec![Write::OpenSession(open)]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[0] else { panic!("no session: {outcomes:?}") };
    store.apply((0..60).map(|number| Write::Submit(Box::new(task(number)))).collect()).await.unwrap();
    let claim = Claim::any(session, 30);
    let outcomes = store.apply(vec![Write::Claim(claim)]).await.unwrap();
    let Outcome::Claimed(claimed) = &outcomes[0] else { panic!("no claim: {outcomes:?}") };
    let ends = claimed.tasks.iter().enumerate().map(|(index, task)| end(index, task.lease)).collect();
    store.apply(ends).await.unwrap();
    let pause = Write::Pause { scope: Scope::Queue("slow".parse().unwrap()), until: None };
    store.apply(vec![pause]).await.unwrap();
    drop(store);
}

fn task(number: usize) -> NewTask {
    let mut task = NewTask::new(["mail", "image"][number % 2]).unwrap();
    task.queue = ["default", "slow"][number % 3 % 2].parse().unwrap();
    task.payload = format!("payload {number} ").repeat(20).into();
    if number.is_multiple_of(5) {
        task.when = When::After(Duration::from_secs(1_000_000));
    }
    if number.is_multiple_of(4) {
        let key = format!("key {number}");
        task.unique =
            Some(UniqueKey { key, on_duplicate: Default::default(), keep_for: Duration::from_secs(1_000_000) });
    }
    task
}

fn end(index: usize, lease: onward_store::Lease) -> Write {
    let fail = |next| Write::Fail { lease, error: format!("error {index}"), next };
    let retry = AfterFailure::Retry { after: Duration::from_secs(1_000_000), uses_attempt: true, hold: false };
    match index % 5 {
        0 => fail(retry),
        1 => fail(AfterFailure::Dead),
        _ => Write::Complete { lease, result: Some(format!("result {index}").into()) },
    }
}
