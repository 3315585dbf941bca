//! Orchestrations that change their tags, so that they are found by their current work.

use bytes::Bytes;
use onward_store::{
    AfterTurn, Bulk, BulkVerb, Lease, NewTask, Outcome, Recipient, Refusal, Tags, TaskFilter, TaskId, TaskState, Turn,
    Write, bounds,
};

use super::orchestration_turns::{PARK, claim, one_event, orchestration, parked, signal, turned};
use crate::conformance::tasks::tags::{by, count, ids, keys, owned, prune_all, tags, values};
use crate::test_store::{TestStore, task};

/// Changes of tags: each key with its new value, or `None` to remove the tag.
type Changed = Vec<(String, Option<String>)>;

fn tagged(with: &[(&str, &str)]) -> NewTask {
    NewTask { tags: tags(with), ..orchestration() }
}

/// Returns changes of tags; `None` removes one.
fn changes(changes: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    changes.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
}

/// Returns a turn that appends one event and changes tags.
fn retagging(lease: Lease, length: u64, with: &[(&str, Option<&str>)], next: AfterTurn) -> Turn {
    Turn { tags: changes(with), ..one_event(lease, length, next) }
}

fn orchestrations_by(with: &[(&str, &str)]) -> TaskFilter {
    TaskFilter { orchestration: Some(true), ..by(with) }
}

/// Shows: D10
pub async fn an_orchestration_is_found_by_the_tags_that_it_gives_itself(store: TestStore) {
    let lease = store.running(tagged(&[("customer", "42"), ("stage", "picking")])).await;
    let other = store.submit_new(tagged(&[("stage", "picking")])).await;
    turned(&store, retagging(lease, 0, &[("stage", Some("packing")), ("by", Some("ada"))], PARK)).await;
    let after = tags(&[("by", "ada"), ("customer", "42"), ("stage", "packing")]);
    assert_eq!(store.record(lease.task).await.tags, after);
    assert_eq!(ids(&store, by(&[("stage", "packing")])).await, [lease.task]);
    assert_eq!(store.list(orchestrations_by(&[("stage", "packing"), ("customer", "42")])).await, [lease.task]);
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, [other]);
    assert_eq!(count(&store, by(&[("by", "ada")])).await, Some(1));
    assert_eq!(values(&store, "stage", TaskFilter::default()).await, owned(&[("packing", 1), ("picking", 1)]));
}

/// Shows: D10
pub async fn the_last_change_of_a_tag_in_a_turn_counts(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    let with =
        [("stage", Some("packing")), ("stage", None), ("stage", Some("sent")), ("by", Some("ada")), ("by", None)];
    turned(&store, retagging(lease, 0, &with, PARK)).await;
    assert_eq!(store.record(lease.task).await.tags, tags(&[("stage", "sent")]));
    assert_eq!(values(&store, "stage", TaskFilter::default()).await, owned(&[("sent", 1)]));
    assert_eq!(keys(&store, "").await, ["stage"]);
}

/// Shows: D10
pub async fn an_orchestration_without_tags_gives_itself_some(store: TestStore) {
    let lease = store.running(orchestration()).await;
    turned(&store, retagging(lease, 0, &[("stage", Some("picking"))], AfterTurn::Continue)).await;
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, [lease.task]);
    turned(&store, retagging(lease, 1, &[("stage", Some("packing"))], PARK)).await;
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, []);
    assert_eq!(ids(&store, orchestrations_by(&[("stage", "packing")])).await, [lease.task]);
}

/// Shows: D10
pub async fn a_tag_that_an_orchestration_removes_finds_it_no_longer(store: TestStore) {
    let lease = store.running(tagged(&[("customer", "42"), ("stage", "picking")])).await;
    // This read before the turn matters: a store may keep the result in its row cache.
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, [lease.task]);
    turned(&store, retagging(lease, 0, &[("stage", None), ("never", None)], PARK)).await;
    assert_eq!(store.record(lease.task).await.tags, tags(&[("customer", "42")]));
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, []);
    assert_eq!(store.list(TaskFilter { tag_key_prefix: Some("st".to_owned()), ..TaskFilter::default() }).await, []);
    assert_eq!(keys(&store, "").await, ["customer"]);
}

/// Shows: D10
pub async fn an_orchestration_may_remove_its_last_tag(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    turned(&store, retagging(lease, 0, &[("stage", None)], PARK)).await;
    assert_eq!((store.record(lease.task).await.tags, keys(&store, "").await), (Tags::new(), Vec::new()));
    store.done(signal(Recipient::Task(lease.task), "1")).await;
    assert_eq!(claim(&store, lease.session).await.tags, Tags::new());
}

/// Shows: D10
pub async fn the_next_claim_returns_the_current_tags(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let lease = claim(&store, session).await.lease;
    let turn = retagging(lease, 1, &[("stage", Some("packing"))], PARK);
    turned(&store, Turn { consumed: 1, ..turn }).await;
    store.done(signal(Recipient::Task(task), "2")).await;
    assert_eq!(claim(&store, session).await.tags, tags(&[("stage", "packing")]));
}

/// Shows: D10
pub async fn changed_tags_survive_a_restart(mut store: TestStore) {
    let lease = store.running(tagged(&[("customer", "42"), ("stage", "picking")])).await;
    turned(&store, retagging(lease, 0, &[("customer", None), ("stage", Some("packing"))], PARK)).await;
    store.reopen().await;
    assert_eq!(store.record(lease.task).await.tags, tags(&[("stage", "packing")]));
    assert_eq!(ids(&store, by(&[("stage", "packing")])).await, [lease.task]);
    assert_eq!(keys(&store, "").await, ["stage"]);
    store.done(signal(Recipient::Task(lease.task), "1")).await;
    assert_eq!(claim(&store, store.session().await).await.tags, tags(&[("stage", "packing")]));
}

/// Shows: D10
pub async fn a_refused_turn_changes_no_tags(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    let turn = retagging(lease, 3, &[("stage", Some("packing"))], PARK);
    assert!(matches!(store.refused(Write::Turn(Box::new(turn))).await, Refusal::HistoryMoved { .. }));
    let turn = retagging(lease, 0, &[("stage", Some("packing"))], PARK);
    let writes = vec![Write::Turn(Box::new(turn)), Write::Cancel { task: TaskId(999) }];
    assert!(matches!(store.refused(Write::All(writes)).await, Refusal::InAll { index: 1, .. }));
    assert_eq!(store.record(lease.task).await.tags, tags(&[("stage", "picking")]));
    assert_eq!(values(&store, "stage", TaskFilter::default()).await, owned(&[("picking", 1)]));
}

/// Shows: D10, D9
pub async fn tags_that_no_task_may_have_are_refused_with_their_turn(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    let long = |key: usize, value: usize| vec![("k".repeat(key), Some("v".repeat(value)))];
    let many = |many: usize| (0..many).map(|number| (number.to_string(), Some(String::new()))).collect();
    let named_again = changes(&[("stage", Some("packing")); bounds::TURN_TAGS + 1]);
    let wrong: [(Changed, &str); 7] = [
        (long(0, 1), "an empty key"),
        (long(65, 1), "has 65 bytes and may have 64"),
        (long(1, 257), "has 257 bytes and may have 256"),
        (changes(&[("a=b", Some("1"))]), "has `=`"),
        (changes(&[("a\u{200b}b", Some("1"))]), "U+200B at position 2"),
        (many(32), "has 33 tags and may have 32"),
        (named_again, "changes 65 tags, and may change 64"),
    ];
    for (tags, expected) in wrong {
        let text = store.invalid(Write::Turn(Box::new(Turn { tags, ..one_event(lease, 0, PARK) }))).await;
        assert!(text.contains(expected) && text.contains("of kind `order`"), "{text}");
    }
    assert_eq!((store.state(lease.task).await, keys(&store, "").await), (TaskState::Running, vec!["stage".to_owned()]));
    let mut all: Changed = many(32);
    all.push(("stage".to_owned(), None));
    turned(&store, Turn { tags: all, ..one_event(lease, 0, PARK) }).await;
    assert_eq!(store.record(lease.task).await.tags.len(), 32);
}

/// Shows: D10
pub async fn an_ended_orchestration_keeps_its_last_tags(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    let next = AfterTurn::Complete { result: None };
    turned(&store, retagging(lease, 0, &[("stage", Some("sent"))], next)).await;
    assert_eq!(store.record(lease.task).await.tags, tags(&[("stage", "sent")]));
    let ended = TaskFilter { states: vec![TaskState::Completed], ..orchestrations_by(&[("stage", "sent")]) };
    assert_eq!(store.list(ended).await, [lease.task]);
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, []);
    prune_all(&store).await;
    assert_eq!((ids(&store, by(&[("stage", "sent")])).await, keys(&store, "").await), (Vec::new(), Vec::new()));
}

/// Shows: D10
pub async fn changed_tags_select_orchestrations_for_what_is_done_to_many(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    turned(&store, retagging(lease, 0, &[("stage", Some("stuck"))], PARK)).await;
    let filter = orchestrations_by(&[("stage", "stuck")]);
    let bulk = Bulk { verb: BulkVerb::Pause, filter, before: None, limit: 10 };
    let Outcome::Bulk(done) = store.write(Write::Bulk(Box::new(bulk))).await else {
        unreachable!("nothing refuses a chunk")
    };
    assert_eq!((done.tasks, done.skipped), (1, 0));
}

/// Shows: D10, D4
pub async fn a_continued_orchestration_keeps_its_tags(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    let next = AfterTurn::ContinueAsNew { payload: Bytes::new(), events: 0, chunk: Bytes::new() };
    turned(&store, retagging(lease, 0, &[("stage", Some("again"))], next)).await;
    assert_eq!(claim(&store, lease.session).await.tags, tags(&[("stage", "again")]));
    assert_eq!(ids(&store, by(&[("stage", "again")])).await, [lease.task]);
}

/// Shows: D10
pub async fn a_dead_letter_that_is_retried_keeps_the_tags_that_it_gave_itself(store: TestStore) {
    let lease = store.running(tagged(&[("stage", "picking")])).await;
    turned(&store, retagging(lease, 0, &[("stage", Some("packing"))], AfterTurn::Continue)).await;
    turned(&store, Turn::new(lease, 1, AfterTurn::Dead { error: "other code".into() })).await;
    assert_eq!(ids(&store, by(&[("stage", "packing")])).await, [lease.task]);
    store.retry(lease.task).await;
    let again = claim(&store, lease.session).await;
    assert_eq!(again.tags, tags(&[("stage", "packing")]));
    turned(&store, retagging(again.lease, 1, &[("stage", Some("sent"))], PARK)).await;
    assert_eq!(values(&store, "stage", TaskFilter::default()).await, owned(&[("sent", 1)]));
}

/// Shows: D10
pub async fn many_that_change_their_tags_at_once_leave_those_of_others_alone(store: TestStore) {
    let beside = store.submit_new(NewTask { tags: tags(&[("stage", "picking")]), ..task("k") }).await;
    let plain = store.submit_new(NewTask { tags: tags(&[("stage", "sent")]), ..task("k") }).await;
    let session = store.session().await;
    let (first, second) = (tagged(&[("stage", "picking")]), tagged(&[("stage", "picking"), ("by", "ada")]));
    let (first, second) = (store.submit_new(first).await, store.submit_new(second).await);
    let claimed = store.claim_kinds_leases(session, &["order"]).await;
    let turns = claimed.iter().map(|lease| {
        let next = AfterTurn::Complete { result: None };
        Write::Turn(Box::new(retagging(*lease, 0, &[("stage", Some("sent")), ("by", None)], next)))
    });
    store.apply(turns.collect()).await;
    assert_eq!(ids(&store, by(&[("stage", "sent")])).await, [second, first, plain]);
    assert_eq!(ids(&store, by(&[("stage", "picking")])).await, [beside]);
    assert_eq!(keys(&store, "").await, ["stage"]);
}
