//! Tags, by which tasks can be found.

use onward_store::{
    NewTask, OnDuplicate, Page, Prune, StoreReads, TagPage, Tags, TaskFilter, TaskId, TaskState, Write,
};

use crate::test_store::{TestStore, keyed, name, task};

pub(in crate::conformance) fn tags(tags: &[(&str, &str)]) -> Tags {
    tags.iter().copied().collect()
}

fn tagged(with: &[(&str, &str)]) -> NewTask {
    NewTask { tags: tags(with), ..task("k") }
}

pub(in crate::conformance) fn by(with: &[(&str, &str)]) -> TaskFilter {
    TaskFilter { tags: tags(with), ..TaskFilter::default() }
}

pub(in crate::conformance) async fn ids(store: &TestStore, filter: TaskFilter) -> Vec<TaskId> {
    let page = store.inner().task_ids(filter, Page { before: None, limit: 10_000 }).await.unwrap_or_default();
    assert_eq!(page.next, None);
    page.tasks
}

pub(in crate::conformance) async fn count(store: &TestStore, filter: TaskFilter) -> Option<u64> {
    store.inner().count(filter).await.ok()
}

pub(in crate::conformance) async fn values(store: &TestStore, key: &str, filter: TaskFilter) -> Vec<(String, u64)> {
    let page = store.inner().tag_values(key.to_owned(), filter, TagPage::default()).await.unwrap_or_default();
    page.values.into_iter().map(|value| (value.value, value.tasks)).collect()
}

pub(in crate::conformance) async fn keys(store: &TestStore, prefix: &str) -> Vec<String> {
    store.inner().tag_keys(prefix.to_owned(), TagPage::default()).await.unwrap_or_default().keys
}

pub(in crate::conformance) fn owned(values: &[(&str, u64)]) -> Vec<(String, u64)> {
    values.iter().map(|(value, tasks)| ((*value).to_owned(), *tasks)).collect()
}

pub(in crate::conformance) async fn prune_all(store: &TestStore) {
    store.removed(Write::Prune(Prune { keep: Some(0), older_than: None, limit: 1000 })).await;
}

/// Shows: T10
pub async fn a_task_has_the_tags_of_its_submission(store: TestStore) {
    let new = tagged(&[("customer", "42"), ("leer", "")]);
    let id = store.submit_new(new.clone()).await;
    assert_eq!(store.record(id).await.tags, new.tags);
}

/// Shows: T10
pub async fn a_worker_sees_the_tags(store: TestStore) {
    let new = tagged(&[("customer", "42")]);
    store.submit_new(new.clone()).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await.remove(0).tags, new.tags);
}

/// Shows: T10
pub async fn a_worker_of_another_time_sees_the_tags(mut store: TestStore) {
    let new = tagged(&[("customer", "42")]);
    let id = store.submit_new(new.clone()).await;
    store.reopen().await;
    // A store that keeps data only in memory has forgotten the task.
    if store.find(id).await.is_some() {
        let session = store.session().await;
        assert_eq!(store.claim(session, 1).await.remove(0).tags, new.tags);
    }
}

/// Shows: T10, T17
pub async fn an_ended_task_keeps_its_tags(store: TestStore) {
    let new = tagged(&[("customer", "42")]);
    let id = store.completed(new.clone()).await;
    assert_eq!(store.record(id).await.tags, new.tags);
    assert_eq!(store.list(by(&[("customer", "42")])).await, [id]);
}

/// Shows: T10
pub async fn a_listing_shows_tags(store: TestStore) {
    let new = tagged(&[("customer", "42")]);
    store.submit_new(new.clone()).await;
    let page = store.inner().tasks(TaskFilter::default(), Page::default()).await.unwrap_or_default();
    assert_eq!(page.tasks[0].tags, new.tags);
}

/// Shows: T10
pub async fn tasks_are_found_by_a_tag(store: TestStore) {
    let first = store.submit_new(tagged(&[("customer", "42")])).await;
    store.submit_new(tagged(&[("customer", "43")])).await;
    store.submit("k").await;
    let last = store.submit_new(tagged(&[("customer", "42"), ("region", "eu")])).await;
    let filter = by(&[("customer", "42")]);
    assert_eq!(ids(&store, filter.clone()).await, [last, first]);
    assert_eq!(store.list(filter.clone()).await, [last, first]);
    assert_eq!(count(&store, filter).await, Some(2));
}

/// Shows: T10
pub async fn of_several_tags_a_task_has_all(store: TestStore) {
    store.submit_new(tagged(&[("customer", "42")])).await;
    store.submit_new(tagged(&[("region", "eu")])).await;
    let both = store.submit_new(tagged(&[("customer", "42"), ("region", "eu")])).await;
    let filter = by(&[("region", "eu"), ("customer", "42")]);
    assert_eq!((ids(&store, filter.clone()).await, count(&store, filter).await), (vec![both], Some(1)));
}

/// Shows: T10
pub async fn tags_and_other_conditions_combine(store: TestStore) {
    let running = store.running(tagged(&[("customer", "42")])).await.task;
    let waiting = store.submit_new(NewTask { queue: name("slow"), ..tagged(&[("customer", "42")]) }).await;
    let in_state = |state| TaskFilter { states: vec![state], ..by(&[("customer", "42")]) };
    assert_eq!(ids(&store, in_state(TaskState::Running)).await, [running]);
    assert_eq!(ids(&store, in_state(TaskState::Waiting)).await, [waiting]);
    assert_eq!(ids(&store, in_state(TaskState::Completed)).await, []);
    let in_queue = TaskFilter { queue: Some(name("slow")), ..by(&[("customer", "42")]) };
    assert_eq!((store.list(in_queue.clone()).await, count(&store, in_queue).await), (vec![waiting], Some(1)));
}

/// Shows: T10
pub async fn a_tag_that_no_task_has_finds_nothing(store: TestStore) {
    store.submit_new(tagged(&[("customer", "42")])).await;
    for filter in [by(&[("customer", "4")]), by(&[("customer", "42"), ("region", "eu")]), by(&[("42", "customer")])] {
        assert_eq!((ids(&store, filter.clone()).await, count(&store, filter).await), (vec![], Some(0)));
    }
}

/// Shows: T10
pub async fn numbers_come_in_pages(store: TestStore) {
    let mut submitted = Vec::new();
    for _ in 0..5 {
        submitted.push(store.submit_new(tagged(&[("customer", "42")])).await);
    }
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = Page { before, limit: 2 };
        let page = store.inner().task_ids(by(&[("customer", "42")]), page).await.unwrap_or_default();
        pages.push(page.tasks);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    submitted.reverse();
    assert_eq!(pages, submitted.chunks(2).collect::<Vec<_>>());
}

/// Shows: T10
pub async fn tasks_are_found_by_the_prefix_of_a_tags_key(store: TestStore) {
    let one = store.submit_new(tagged(&[("build.commit", "1"), ("build.target", "x")])).await;
    let other = store.submit_new(tagged(&[("build.", "")])).await;
    store.submit_new(tagged(&[("built", "1"), ("BUILD.commit", "1"), ("a", "build.")])).await;
    let filter = TaskFilter { tag_key_prefix: Some("build.".to_owned()), ..TaskFilter::default() };
    assert_eq!(ids(&store, filter.clone()).await, [other, one]);
    assert_eq!((store.list(filter.clone()).await, count(&store, filter).await), (vec![other, one], Some(2)));
}

/// Shows: T10
pub async fn what_a_query_language_would_take_for_its_own_is_text(store: TestStore) {
    let with = [("%", "'; DROP TABLE task; --"), ("_", "\0*")];
    let id = store.submit_new(tagged(&with)).await;
    store.submit_new(tagged(&[("ab", "x")])).await;
    assert_eq!(ids(&store, by(&with)).await, [id]);
    let filter = TaskFilter { tag_key_prefix: Some("%".to_owned()), ..TaskFilter::default() };
    assert_eq!(ids(&store, filter).await, [id]);
    assert_eq!(keys(&store, "_").await, ["_"]);
}

/// Shows: T10
pub async fn the_values_of_a_key_come_with_their_counts(store: TestStore) {
    for value in ["b", "a", "b"] {
        store.submit_new(tagged(&[("customer", value), ("other", "z")])).await;
    }
    store.completed(NewTask { priority: onward_store::Priority::URGENT, ..tagged(&[("customer", "c")]) }).await;
    let all = values(&store, "customer", TaskFilter::default()).await;
    assert_eq!(all, owned(&[("a", 1), ("b", 2), ("c", 1)]));
    assert_eq!(values(&store, "custome", TaskFilter::default()).await, []);
}

/// Shows: T10
pub async fn the_values_of_a_key_are_counted_under_a_filter(store: TestStore) {
    let ended = store.completed(tagged(&[("customer", "a")])).await;
    store.submit_new(tagged(&[("customer", "a")])).await;
    store.submit_new(tagged(&[("customer", "b"), ("region", "eu")])).await;
    let live = TaskFilter { states: vec![TaskState::Waiting], ..TaskFilter::default() };
    assert_eq!(values(&store, "customer", live).await, owned(&[("a", 1), ("b", 1)]));
    let completed = TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() };
    assert_eq!(values(&store, "customer", completed).await, owned(&[("a", 1)]));
    assert_eq!(values(&store, "customer", by(&[("region", "eu")])).await, owned(&[("b", 1)]));
    assert_eq!(values(&store, "customer", by(&[("customer", "a")])).await, owned(&[("a", 2)]));
    assert_eq!(store.state(ended).await, TaskState::Completed);
}

/// Shows: T10
pub async fn values_and_keys_come_in_pages(store: TestStore) {
    for value in ["", "a", "b"] {
        store.submit_new(tagged(&[("k1", value), ("k2", value), ("l", "")])).await;
    }
    let page = |after: Option<&str>| TagPage { after: after.map(str::to_owned), limit: 2 };
    let store = store.inner();
    let first = store.tag_values("k1".into(), TaskFilter::default(), page(None)).await.unwrap_or_default();
    let second = store.tag_values("k1".into(), TaskFilter::default(), page(Some("a"))).await.unwrap_or_default();
    assert_eq!((first.values.len(), first.next.as_deref()), (2, Some("a")));
    assert_eq!((second.values[0].value.as_str(), second.next), ("b", None));
    let keys = store.tag_keys(String::new(), page(None)).await.unwrap_or_default();
    assert_eq!((keys.keys, keys.next.as_deref()), (vec!["k1".to_owned(), "k2".to_owned()], Some("k2")));
    let rest = store.tag_keys(String::new(), page(Some("k2"))).await.unwrap_or_default();
    assert_eq!((rest.keys, rest.next), (vec!["l".to_owned()], None));
}

/// Shows: T10
pub async fn keys_are_found_by_their_prefix(store: TestStore) {
    store.submit_new(tagged(&[("b.1", ""), ("b.2", ""), ("c", ""), ("a", "")])).await;
    assert_eq!(keys(&store, "b.").await, ["b.1", "b.2"]);
    assert_eq!(keys(&store, "").await, ["a", "b.1", "b.2", "c"]);
    assert!(keys(&store, "d").await.is_empty());
}

/// Shows: T10
/// Beats: unpruned-tags
pub async fn the_tags_of_a_pruned_task_are_gone(store: TestStore) {
    store.completed(tagged(&[("customer", "42"), ("region", "eu")])).await;
    let kept = store.submit_new(tagged(&[("customer", "42")])).await;
    prune_all(&store).await;
    assert_eq!(ids(&store, by(&[("customer", "42")])).await, [kept]);
    assert_eq!(count(&store, by(&[("customer", "42")])).await, Some(1));
    assert_eq!(values(&store, "region", TaskFilter::default()).await, []);
    assert_eq!(keys(&store, "").await, ["customer"]);
}

/// Shows: T10
pub async fn the_tags_of_a_purged_task_are_gone(store: TestStore) {
    store.completed(tagged(&[("customer", "42")])).await;
    store.submit_new(tagged(&[("customer", "42")])).await;
    let states = vec![TaskState::Waiting, TaskState::Completed];
    store.removed(Write::Purge { queue: name("default"), states, limit: 10 }).await;
    assert_eq!((keys(&store, "").await, count(&store, by(&[("customer", "42")])).await), (vec![], Some(0)));
}

/// Shows: T10
pub async fn a_task_that_is_retried_keeps_its_tags(store: TestStore) {
    let id = store.completed(tagged(&[("customer", "42")])).await;
    store.retry(id).await;
    store.complete_next().await;
    assert_eq!(ids(&store, by(&[("customer", "42")])).await, [id]);
    assert_eq!(values(&store, "customer", TaskFilter::default()).await, owned(&[("42", 1)]));
}

/// Shows: T10, T3
pub async fn a_task_that_follows_another_has_its_own_tags(store: TestStore) {
    let with = |value| NewTask { tags: tags(&[("v", value)]), ..keyed("a", OnDuplicate::Requeue) };
    let lease = store.running(with("1")).await;
    store.submitted(with("2")).await;
    assert_eq!(count(&store, by(&[("v", "2")])).await, Some(0));
    store.complete(lease).await;
    assert_eq!(values(&store, "v", TaskFilter::default()).await, owned(&[("1", 1), ("2", 1)]));
}

/// Shows: T10
pub async fn a_duplicate_changes_no_tags(store: TestStore) {
    let with = |value| NewTask { tags: tags(&[("v", value)]), ..keyed("a", OnDuplicate::Skip) };
    let id = store.submit_new(with("1")).await;
    store.submitted(with("2")).await;
    assert_eq!(store.record(id).await.tags, tags(&[("v", "1")]));
    assert_eq!(keys(&store, "").await, ["v"]);
}

/// Shows: T10
pub async fn a_refused_write_of_an_all_leaves_no_tags(store: TestStore) {
    let submit = |with: &[(&str, &str)]| Write::Submit(Box::new(tagged(with)));
    store.submit_new(tagged(&[("a", "1")])).await;
    let refused = Write::Cancel { task: TaskId(999) };
    store.refused(Write::All(vec![submit(&[("a", "1"), ("b", "2")]), refused])).await;
    assert_eq!((keys(&store, "").await, count(&store, by(&[("a", "1")])).await), (vec!["a".to_owned()], Some(1)));
    store.submit_new(tagged(&[("b", "2"), ("c", "3")])).await;
    assert_eq!(ids(&store, by(&[("c", "3"), ("b", "2")])).await.len(), 1);
}

/// Shows: T10
pub async fn as_many_tags_as_may_be_are_taken(store: TestStore) {
    let most: Tags = (0..32).map(|number| (format!("{number:064}"), "v".repeat(256))).collect();
    let id = store.submit_new(NewTask { tags: most.clone(), ..task("k") }).await;
    assert_eq!(store.record(id).await.tags, most);
    assert_eq!(ids(&store, TaskFilter { tags: most, ..TaskFilter::default() }).await, [id]);
}

/// Shows: T10
pub async fn tags_out_of_bounds_are_refused(store: TestStore) {
    let many: Tags = (0..33).map(|number| (number.to_string(), "")).collect();
    let long = |key: usize, value: usize| [("k".repeat(key), "v".repeat(value))].into_iter().collect();
    for wrong in [many, long(0, 1), long(65, 1), long(1, 257), tags(&[("a=b", "1")]), tags(&[("a\n", "1")])] {
        store.invalid(Write::Submit(Box::new(NewTask { tags: wrong, ..task("k") }))).await;
    }
    assert_eq!((store.list(Default::default()).await, keys(&store, "").await), (vec![], vec![]));
}
