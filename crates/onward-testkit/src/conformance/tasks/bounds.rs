//! Values that every store rejects, and texts that are truncated.

use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{
    AfterFailure, GroupShare, KindSelection, LimitScope, NewTask, OnDuplicate, OpenSession, Recipient, Scope, Served,
    SetLimit, Signal, StoreReads, Ttl, TtlFrom, Write,
};

use crate::test_store::{TestStore, keyed, name, task};

fn submit(new: NewTask) -> Write {
    Write::Submit(Box::new(new))
}

async fn refuses(store: &TestStore, new: NewTask) -> String {
    let text = store.invalid(submit(new)).await;
    assert_eq!(store.list(Default::default()).await, [], "a refused submit leaves no task");
    assert_eq!(store.inner().queues().await.ok(), Some(vec![]), "a refused submit makes no queue");
    text
}

/// Shows: T1
pub async fn a_payload_at_the_limit_is_taken(store: TestStore) {
    let payload = vec![7; store.payload_limit()];
    let id = store.submit_new(NewTask { payload: payload.clone().into(), ..task("k") }).await;
    assert_eq!(store.record(id).await.payload.map(Vec::from), Some(payload));
}

/// Shows: T1
pub async fn a_payload_beyond_the_limit_is_refused(store: TestStore) {
    let payload = vec![0; store.payload_limit() + 1].into();
    let text = refuses(&store, NewTask { payload, ..task("k") }).await;
    assert!(text.contains(&store.payload_limit().to_string()) && text.contains("`k`"), "{text}");
}

pub async fn a_result_beyond_the_limit_is_refused_and_can_be_mended(store: TestStore) {
    let lease = store.running(task("k")).await;
    let result = Some(vec![0; store.payload_limit() + 1].into());
    store.invalid(Write::Complete { lease, result }).await;
    let result = Some(vec![0; store.payload_limit()].into());
    store.done(Write::Complete { lease, result }).await;
}

pub async fn the_longest_key_is_taken(store: TestStore) {
    let id = store.submit_new(keyed(&"k".repeat(512), OnDuplicate::Skip)).await;
    assert_eq!(store.record(id).await.key.map(|key| key.len()), Some(512));
}

pub async fn a_key_that_is_too_long_is_refused(store: TestStore) {
    let text = refuses(&store, keyed(&"k".repeat(513), OnDuplicate::Skip)).await;
    assert!(text.contains("512"), "{text}");
}

pub async fn an_empty_key_is_refused(store: TestStore) {
    refuses(&store, keyed("", OnDuplicate::Skip)).await;
}

pub async fn a_time_to_live_of_zero_is_refused(store: TestStore) {
    let ttl = Some(Ttl { duration: Duration::ZERO, from: TtlFrom::Submission });
    refuses(&store, NewTask { ttl, ..task("k") }).await;
}

pub async fn a_heartbeat_timeout_of_zero_is_refused(store: TestStore) {
    refuses(&store, NewTask { heartbeat_timeout: Some(Duration::ZERO), ..task("k") }).await;
}

pub async fn a_timeout_of_zero_is_refused(store: TestStore) {
    refuses(&store, NewTask { timeout: Some(Duration::ZERO), ..task("k") }).await;
}

pub async fn a_retry_policy_that_makes_no_sense_is_refused(store: TestStore) {
    let backoff = Backoff::Exponential { initial: Duration::ZERO, factor: f64::NAN, maximum: Duration::ZERO };
    for retry in [RetryPolicy { attempts: 0, ..RetryPolicy::default() }, RetryPolicy { attempts: 1, backoff }] {
        refuses(&store, NewTask { retry: Some(retry), ..task("k") }).await;
    }
}

pub async fn the_longest_names_are_taken(store: TestStore) {
    let long = "n".repeat(128);
    let id = store.submit_new(NewTask { queue: name(&long), ..task(&long) }).await;
    assert_eq!(store.record(id).await.kind, name(&long));
}

/// Shows: T1
pub async fn what_names_something_has_no_character_that_is_not_seen(store: TestStore) {
    let tags = [("a\u{200b}b", "any\u{202e}value")].into_iter().collect();
    let groups = Write::SetLimit(SetLimit {
        weight: Some(GroupShare::Of(2)),
        ..SetLimit::new(LimitScope::Groups("t\u{202e}".to_owned()))
    });
    let kinds = KindSelection::matching(vec![], vec!["i\u{2066}".to_owned()]);
    let serves = Served { queues: None, kinds, code: None };
    let session = Write::OpenSession(OpenSession { serves, ..OpenSession::new("w", Duration::from_secs(1)) });
    for (write, wrong) in [
        (submit(NewTask { tags, ..task("k") }), "U+200B at position 2"),
        (groups, "U+202E at position 2"),
        (session, "U+2066 at position 2"),
    ] {
        let text = store.invalid(write).await;
        assert!(text.contains(wrong) && !text.contains(['\u{200b}', '\u{202e}', '\u{2066}']), "{text:?}");
    }
}

/// Shows: T1
pub async fn a_key_is_any_text_and_is_escaped_in_a_refusal(store: TestStore) {
    let id = store.submit_new(keyed("a\u{202e}b", OnDuplicate::Skip)).await;
    assert_eq!(store.record(id).await.key.as_deref(), Some("a\u{202e}b"));
    let to = Recipient::Key { kind: name("other"), key: "a\u{202e}b".to_owned() };
    let signal = Signal { to, name: name("go"), payload: Default::default() };
    let refusal = store.refused(Write::Signal(Box::new(signal))).await;
    assert!(refusal.to_string().contains(r"`a\u{202e}b`"), "{refusal}");
}

pub async fn a_long_error_is_cut(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.write(Write::Fail { lease, error: "é".repeat(9000), next: AfterFailure::Dead }).await;
    let message = store.record(lease.task).await.errors.remove(0).message;
    assert!(message.len() <= 8192 && message.ends_with("(cut)"), "{} bytes", message.len());
}

pub async fn a_long_progress_message_is_cut(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.done(Write::Report { lease, fraction: None, message: Some("m".repeat(2000)), bytes: None }).await;
    let progress = store.record(lease.task).await.progress;
    assert!(progress.and_then(|progress| progress.message).is_some_and(|message| message.len() <= 1024));
}

pub async fn of_too_many_errors_the_first_and_the_newest_stay(store: TestStore) {
    let mut lease = store.running(task("k")).await;
    for _ in 0..70 {
        let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
        lease = store.fail(lease, hold).await.lease.unwrap_or(lease);
    }
    let attempts: Vec<u32> = store.record(lease.task).await.errors.iter().map(|error| error.attempt).collect();
    assert_eq!(attempts, std::iter::once(1).chain(8..=70).collect::<Vec<_>>());
}

pub async fn a_queue_too_many_is_refused(store: TestStore) {
    let queue = |number: usize| Scope::Queue(name(&format!("q{number}")));
    store.apply((0..10_000).map(|number| Write::Pause { scope: queue(number), until: None }).collect()).await;
    let text = store.invalid(submit(NewTask { queue: name("one-more"), ..task("k") })).await;
    assert!(text.contains("10000"), "{text}");
    store.invalid(Write::Pause { scope: queue(10_000), until: None }).await;
    store.submit_new(NewTask { queue: name("q7"), ..task("k") }).await;
}

/// Each of the two queues could be added alone, but not both.
pub async fn a_queue_too_many_among_several_submissions_undoes_them(store: TestStore) {
    let queue = |number: usize| name(&format!("q{number}"));
    let pause = |number| Write::Pause { scope: Scope::Queue(queue(number)), until: None };
    store.apply((1..10_000).map(pause).collect()).await;
    let new = |number| submit(NewTask { queue: queue(number), ..task("k") });
    store.refused(Write::All(vec![new(10_000), new(10_001)])).await;
    assert_eq!(store.list(Default::default()).await, []);
    assert_eq!(store.queue("q10000").await, None);
}

pub async fn a_kind_too_many_is_refused(store: TestStore) {
    let kind = |number: usize| Scope::Kind(name(&format!("k{number}")));
    store.apply((0..10_000).map(|number| Write::Pause { scope: kind(number), until: None }).collect()).await;
    store.invalid(submit(task("one-more"))).await;
    store.submit("k7").await;
}
