//! Queues: weights, concurrency and modes.

use std::time::Duration;

use onward_store::{
    Claim, Claimed, ConcurrencyLimit, Lease, NewTask, OnDuplicate, Outcome, Priority, QueueChoice, QueueMode,
    QueueSettings, QueueTurn, Scope, SessionId, SetQueue, StoreReads, TaskState, UniqueKey, Write,
};

use crate::test_store::{LEASE, TestStore, after, all_of, name, task};

fn set(queue: &str) -> SetQueue {
    SetQueue::new(name(queue))
}

async fn settings(store: &TestStore, queue: &str) -> Option<(u32, Option<u32>)> {
    store.queue(queue).await.map(|queue| (queue.weight, queue.concurrency))
}

async fn apply(store: &TestStore, set: SetQueue) {
    let outcome = store.write(Write::SetQueue(set)).await;
    assert!(matches!(outcome, Outcome::QueueSet(_)), "{outcome:?}");
}

async fn submit(store: &TestStore, queue: &str, tasks: usize) {
    for _ in 0..tasks {
        store.submit_new(NewTask { queue: name(queue), ..task("k") }).await;
    }
}

/// Limits the queue `a`, and submits more tasks to it than the limit allows.
async fn limited(store: &TestStore, concurrency: u32) -> SessionId {
    apply(store, set("a").concurrency(concurrency)).await;
    submit(store, "a", 6).await;
    store.session().await
}

async fn leases(store: &TestStore, session: SessionId) -> Vec<Lease> {
    store.claim(session, 100).await.iter().map(|task| task.lease).collect()
}

/// Returns the queues of the claimed tasks, in the order of the tasks.
fn queues(claimed: &Claimed) -> String {
    claimed.tasks.iter().map(|task| task.queue.as_str()).collect()
}

fn by(mode: QueueMode, session: SessionId, limit: usize) -> Claim {
    Claim { choice: QueueChoice { mode: Some(mode), ..QueueChoice::default() }, ..all_of(session, limit) }
}

/// Fills three queues: `a` of weight 3, `b` of weight 1, `c` of weight 2. The oldest tasks are in
/// `b`.
async fn three_queues(store: &TestStore) -> SessionId {
    for (queue, weight) in [("b", 1), ("c", 2), ("a", 3)] {
        apply(store, set(queue).weight(weight)).await;
        submit(store, queue, 24).await;
    }
    store.session().await
}

pub async fn a_queue_has_a_weight_of_one_and_no_limit_by_default(store: TestStore) {
    store.submit("k").await;
    assert_eq!(settings(&store, "default").await, Some((1, None)));
}

pub async fn setting_a_queue_returns_its_settings(store: TestStore) {
    let outcome = store.write(Write::SetQueue(set("a").weight(3).concurrency(2))).await;
    assert_eq!(
        outcome,
        Outcome::QueueSet(QueueSettings { weight: 3, concurrency: Some(2), ..QueueSettings::default() })
    );
    assert_eq!(settings(&store, "a").await, Some((3, Some(2))));
}

pub async fn what_is_not_named_stays_as_it_is(store: TestStore) {
    apply(&store, set("a").weight(3).concurrency(2)).await;
    apply(&store, set("a").weight(4)).await;
    assert_eq!(settings(&store, "a").await, Some((4, Some(2))));
    apply(&store, set("a").unlimited()).await;
    assert_eq!(settings(&store, "a").await, Some((4, None)));
}

pub async fn a_queue_that_is_set_is_made(store: TestStore) {
    apply(&store, set("a").weight(1)).await;
    assert_eq!(settings(&store, "a").await, Some((1, None)));
}

pub async fn values_out_of_their_range_are_refused_with_the_range(store: TestStore) {
    for (set, range) in [
        (set("a").weight(0), "1 to 1000"),
        (set("a").weight(1001), "1 to 1000"),
        (set("a").concurrency(0), "1 to 1000000"),
        (set("a").concurrency(1_000_001), "1 to 1000000"),
    ] {
        let text = store.invalid(Write::SetQueue(set)).await;
        assert!(text.contains(range), "{text}");
    }
    assert_eq!(store.queue("a").await, None, "a refused change makes no queue");
}

pub async fn a_change_of_nothing_is_refused(store: TestStore) {
    store.invalid(Write::SetQueue(set("a"))).await;
}

pub async fn a_refused_change_changes_nothing(store: TestStore) {
    apply(&store, set("a").weight(3)).await;
    let both = SetQueue { concurrency: Some(ConcurrencyLimit::AtMost(0)), ..set("a").weight(5) };
    store.invalid(Write::SetQueue(both)).await;
    assert_eq!(settings(&store, "a").await, Some((3, None)));
}

pub async fn a_deleted_queue_is_made_again_with_the_defaults(store: TestStore) {
    apply(&store, set("a").weight(3).concurrency(2)).await;
    store.done(Write::DeleteQueue { queue: name("a") }).await;
    submit(&store, "a", 3).await;
    assert_eq!(settings(&store, "a").await, Some((1, None)));
    let session = store.session().await;
    assert_eq!(store.claim(session, 10).await.len(), 3);
}

pub async fn a_queue_runs_no_more_tasks_than_its_concurrency(store: TestStore) {
    let session = limited(&store, 2).await;
    assert_eq!((store.claim(session, 10).await.len(), store.claim(session, 10).await.len()), (2, 0));
}

pub async fn a_concurrency_counts_what_all_sessions_run(store: TestStore) {
    let (one, other) = (limited(&store, 3).await, store.session().await);
    assert_eq!((store.claim(one, 2).await.len(), store.claim(other, 10).await.len()), (2, 1));
}

pub async fn a_concurrency_holds_for_all_kinds_together(store: TestStore) {
    let session = limited(&store, 2).await;
    store.submit_new(NewTask { queue: name("a"), priority: Priority::URGENT, ..task("other") }).await;
    let kinds: Vec<String> = store.claim(session, 10).await.iter().map(|task| task.kind.to_string()).collect();
    assert_eq!(kinds, ["other", "k"]);
}

pub async fn the_lower_of_concurrency_and_what_a_claim_asks_for_holds(store: TestStore) {
    let session = limited(&store, 3).await;
    assert_eq!(store.claim_from(session, 10, &[("a", 2)]).await.len(), 2);
    assert_eq!(store.claim_from(session, 10, &[("a", 2)]).await.len(), 1);
}

pub async fn a_full_queue_does_not_delay_another(store: TestStore) {
    let session = limited(&store, 1).await;
    submit(&store, "b", 2).await;
    assert_eq!(queues(&store.claimed(all_of(session, 10)).await), "abb");
}

pub async fn a_limit_counts_what_ran_before_it_was_set(store: TestStore) {
    submit(&store, "a", 4).await;
    let session = store.session().await;
    store.claim(session, 2).await;
    apply(&store, set("a").concurrency(3)).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
}

pub async fn tasks_beyond_a_new_limit_continue(store: TestStore) {
    let session = limited(&store, 3).await;
    let leases = leases(&store, session).await;
    apply(&store, set("a").concurrency(1)).await;
    store.complete(leases[0]).await;
    store.complete(leases[1]).await;
    assert_eq!(store.claim(session, 10).await, []);
    store.complete(leases[2]).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
}

pub async fn a_higher_limit_and_none_give_room_at_once(store: TestStore) {
    let session = limited(&store, 1).await;
    store.claim(session, 10).await;
    apply(&store, set("a").concurrency(2)).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
    apply(&store, set("a").unlimited()).await;
    assert_eq!(store.claim(session, 10).await.len(), 4);
}

/// Checks that exactly one more task may run after an attempt ended.
async fn gives_room(store: &TestStore, session: SessionId) {
    let others = store.session().await;
    assert_eq!(store.claim(others, 10).await.len(), 1);
    assert_eq!(store.claim(session, 10).await, []);
}

pub async fn a_completion_gives_room(store: TestStore) {
    let session = limited(&store, 2).await;
    let leases = leases(&store, session).await;
    store.complete(leases[0]).await;
    gives_room(&store, session).await;
}

pub async fn a_completion_with_a_key_and_a_result_gives_room(store: TestStore) {
    apply(&store, set("a").concurrency(1)).await;
    let unique = Some(UniqueKey { key: "x".into(), on_duplicate: OnDuplicate::Skip, keep_for: Duration::ZERO });
    store.submit_new(NewTask { queue: name("a"), unique, ..task("k") }).await;
    submit(&store, "a", 2).await;
    let session = store.session().await;
    let lease = leases(&store, session).await[0];
    store.done(Write::Complete { lease, result: Some("done".into()) }).await;
    gives_room(&store, session).await;
}

pub async fn a_failure_for_good_gives_room(store: TestStore) {
    let session = limited(&store, 2).await;
    let leases = leases(&store, session).await;
    store.fail(leases[0], onward_store::AfterFailure::Dead).await;
    gives_room(&store, session).await;
}

pub async fn a_task_that_is_retried_later_frees_its_slot(store: TestStore) {
    let session = limited(&store, 2).await;
    let leases = leases(&store, session).await;
    store.fail(leases[0], after(Duration::from_secs(60))).await;
    gives_room(&store, session).await;
}

pub async fn a_held_task_uses_no_second_slot(store: TestStore) {
    let session = limited(&store, 2).await;
    let lease = leases(&store, session).await[0];
    let hold = onward_store::AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let lease = store.fail(lease, hold).await.lease.unwrap_or(lease);
    assert_eq!(store.claim(session, 10).await, []);
    store.complete(lease).await;
    gives_room(&store, session).await;
}

pub async fn a_release_gives_room(store: TestStore) {
    let session = limited(&store, 2).await;
    let leases = leases(&store, session).await;
    store.release(leases[0], Duration::ZERO).await;
    gives_room(&store, session).await;
}

pub async fn a_confirmed_cancellation_gives_room(store: TestStore) {
    let session = limited(&store, 2).await;
    let lease = leases(&store, session).await[0];
    store.cancel(lease.task).await;
    assert_eq!(store.claim(session, 10).await, [], "asking is not yet stopping");
    store.done(Write::ConfirmCancel { lease, reason: "stopped".into() }).await;
    gives_room(&store, session).await;
}

pub async fn a_closed_session_gives_room(store: TestStore) {
    let session = limited(&store, 2).await;
    store.claim(session, 1).await;
    let other = store.session().await;
    store.claim(other, 1).await;
    store.done(Write::CloseSession { session: other }).await;
    gives_room(&store, session).await;
}

pub async fn a_lapsed_session_gives_room(store: TestStore) {
    let lapsing = limited(&store, 2).await;
    store.claim(lapsing, 1).await;
    store.advance(LEASE / 2);
    let session = store.session().await;
    store.claim(session, 1).await;
    store.advance(LEASE / 2);
    gives_room(&store, session).await;
}

pub async fn a_refused_all_leaves_the_count_as_it_was(store: TestStore) {
    let session = limited(&store, 2).await;
    let lease = leases(&store, session).await[0];
    let unknown = Write::Cancel { task: onward_store::TaskId(99) };
    let writes = vec![
        Write::Complete { lease, result: None },
        Write::SetQueue(set("a").unlimited()),
        Write::Claim(all_of(session, 9)),
        unknown,
    ];
    store.refused(Write::All(writes)).await;
    assert_eq!(store.claim(session, 10).await, []);
    store.complete(lease).await;
    gives_room(&store, session).await;
}

pub async fn a_completion_and_a_claim_in_one_call_keep_a_queue_full(store: TestStore) {
    let session = limited(&store, 1).await;
    let lease = leases(&store, session).await[0];
    let outcomes = store.apply(vec![Write::Complete { lease, result: None }, Write::Claim(all_of(session, 10))]).await;
    assert!(matches!(&outcomes[1], Outcome::Claimed(claimed) if claimed.tasks.len() == 1), "{outcomes:?}");
}

pub async fn an_end_in_a_full_queue_hints_at_work(store: TestStore) {
    let session = limited(&store, 1).await;
    let lease = leases(&store, session).await[0];
    let before = store.inner().changes().hint().work;
    store.complete(lease).await;
    assert!(store.inner().changes().hint().work > before);
}

pub async fn a_change_of_a_queue_or_the_mode_hints_at_work(store: TestStore) {
    let mut before = store.inner().changes().hint().work;
    for write in [Write::SetQueue(set("a").weight(2)), Write::SetQueueMode(QueueMode::Lenient)] {
        store.write(write).await;
        let now = store.inner().changes().hint().work;
        assert!(now > before);
        before = now;
    }
}

pub async fn the_mode_is_strict_by_default(store: TestStore) {
    assert_eq!(store.inner().queue_mode().await.ok(), Some(QueueMode::Strict));
    store.done(Write::SetQueueMode(QueueMode::Interleaved)).await;
    assert_eq!(store.inner().queue_mode().await.ok(), Some(QueueMode::Interleaved));
}

pub async fn strict_takes_the_highest_weight_first(store: TestStore) {
    let session = three_queues(&store).await;
    let claimed = store.claimed(all_of(session, 60)).await;
    assert_eq!(queues(&claimed), format!("{}{}{}", "a".repeat(24), "c".repeat(24), "b".repeat(12)));
}

pub async fn queues_of_one_weight_are_merged_in_strict_mode(store: TestStore) {
    for queue in ["a", "b"] {
        apply(&store, set(queue).weight(2)).await;
    }
    submit(&store, "low", 1).await;
    for queue in ["b", "a", "b"] {
        submit(&store, queue, 1).await;
    }
    store.submit_new(NewTask { queue: name("a"), priority: Priority::URGENT, ..task("k") }).await;
    let session = store.session().await;
    assert_eq!(queues(&store.claimed(all_of(session, 10)).await), "abablow");
}

pub async fn interleaved_turns_follow_the_weights(store: TestStore) {
    let session = three_queues(&store).await;
    let claimed = store.claimed(by(QueueMode::Interleaved, session, 12)).await;
    assert_eq!(queues(&claimed), "abcacaabcaca");
}

pub async fn claims_of_one_task_each_are_as_fair_as_large_ones(store: TestStore) {
    let session = three_queues(&store).await;
    let (mut given, mut turn) = (String::new(), QueueTurn::default());
    for _ in 0..12 {
        let choice = QueueChoice { mode: Some(QueueMode::Interleaved), turn, random: 0 };
        let claimed = store.claimed(Claim { choice, ..all_of(session, 1) }).await;
        given += &queues(&claimed);
        turn = claimed.turn;
    }
    assert_eq!(given, "abcacaabcaca");
}

pub async fn a_queue_without_work_has_no_turn(store: TestStore) {
    let session = three_queues(&store).await;
    store.pause(Scope::Queue(name("c")), None).await;
    let claimed = store.claimed(by(QueueMode::Interleaved, session, 8)).await;
    assert_eq!(queues(&claimed), "abaaabaa");
}

pub async fn a_full_queue_has_no_turn(store: TestStore) {
    let session = three_queues(&store).await;
    apply(&store, set("c").concurrency(1)).await;
    let claimed = store.claimed(by(QueueMode::Interleaved, session, 9)).await;
    assert_eq!(queues(&claimed), "abcaaabaa");
}

pub async fn what_is_left_when_others_are_empty_gets_every_turn(store: TestStore) {
    let session = three_queues(&store).await;
    for mode in [QueueMode::Interleaved, QueueMode::Lenient] {
        store.claimed(by(mode, session, 30)).await;
    }
    assert_eq!(store.claimed(by(QueueMode::Lenient, session, 100)).await.tasks.len(), 12);
}

pub async fn lenient_turns_go_to_every_queue(store: TestStore) {
    let session = three_queues(&store).await;
    let given = queues(&store.claimed(by(QueueMode::Lenient, session, 36)).await);
    let of = |queue| given.matches(queue).count();
    assert!(of("a") > of("b") && of("b") > 0 && of("c") > 0, "{given}");
}

pub async fn lenient_turns_follow_the_random_number(store: TestStore) {
    let session = three_queues(&store).await;
    let mut first = String::new();
    for random in 0..12 {
        let choice = QueueChoice { mode: Some(QueueMode::Lenient), random, ..QueueChoice::default() };
        first += &queues(&store.claimed(Claim { choice, ..all_of(session, 1) }).await);
    }
    assert!(first.contains('a') && first.contains(['b', 'c']), "{first}");
}

pub async fn within_a_queue_the_most_urgent_goes_first_in_every_mode(store: TestStore) {
    let session = three_queues(&store).await;
    let urgent = NewTask { queue: name("a"), priority: Priority::URGENT, ..task("k") };
    for mode in QueueMode::ALL {
        let id = store.submit_new(urgent.clone()).await;
        let claimed = store.claimed(by(mode, session, 6)).await;
        let first = claimed.tasks.iter().find(|task| task.queue == name("a"));
        assert_eq!(first.map(|task| task.lease.task), Some(id), "{mode}");
    }
}

pub async fn a_claims_own_mode_holds_over_the_stores(store: TestStore) {
    let session = three_queues(&store).await;
    store.done(Write::SetQueueMode(QueueMode::Interleaved)).await;
    let own = store.claimed(by(QueueMode::Strict, session, 6)).await;
    assert_eq!((queues(&own).as_str(), own.mode), ("aaaaaa", QueueMode::Strict));
    let stores = store.claimed(all_of(session, 6)).await;
    assert_eq!((queues(&stores).as_str(), stores.mode), ("abcaca", QueueMode::Interleaved));
}

pub async fn a_claimed_task_has_its_queues_weight(store: TestStore) {
    let session = three_queues(&store).await;
    assert_eq!(store.claim(session, 1).await[0].weight, 3);
}

pub async fn peek_follows_the_mode(store: TestStore) {
    three_queues(&store).await;
    let queue = |peeked: onward_store::Result<Option<onward_store::TaskRecord>>| {
        peeked.ok().flatten().map(|task| task.queue.to_string())
    };
    let turn = store.claimed(by(QueueMode::Interleaved, store.session().await, 1)).await.turn;
    let choice = QueueChoice { mode: Some(QueueMode::Interleaved), turn, random: 0 };
    let interleaved = store.inner().peek(Claim { choice, ..all_of(SessionId(0), 1) }).await;
    let strict = store.inner().peek(all_of(SessionId(0), 1)).await;
    assert_eq!((queue(interleaved).as_deref(), queue(strict).as_deref()), (Some("b"), Some("a")));
}

pub async fn changes_of_pauses_queues_and_the_mode_are_counted(store: TestStore) {
    let session = store.session().await;
    let pause = Write::Pause { scope: Scope::All, until: Some(store.now().plus(Duration::from_secs(1))) };
    let mut before = store.claimed(all_of(session, 0)).await.configuration;
    for write in [
        Write::SetQueue(set("a").concurrency(2)),
        Write::SetQueueMode(QueueMode::Lenient),
        Write::Pause { scope: Scope::Queue(name("a")), until: None },
        Write::Resume { scope: Scope::Queue(name("a")) },
        pause,
    ] {
        store.write(write).await;
        let now = store.claimed(all_of(session, 0)).await.configuration;
        assert!(now > before);
        before = now;
    }
    store.advance(Duration::from_secs(1));
    assert!(store.claimed(all_of(session, 0)).await.configuration > before, "a pause that ends by itself is a change");
}

pub async fn what_tasks_do_is_no_change_of_queues(store: TestStore) {
    let session = limited(&store, 2).await;
    let before = store.claimed(all_of(session, 1)).await.configuration;
    store.write(Write::SetQueue(set("a"))).await;
    store.done(Write::Resume { scope: Scope::All }).await;
    submit(&store, "new", 1).await;
    assert_eq!(store.claimed(all_of(session, 9)).await.configuration, before);
}

pub async fn settings_and_counts_outlive_a_reopening(mut store: TestStore) {
    apply(&store, set("a").weight(7).concurrency(2)).await;
    store.done(Write::SetQueueMode(QueueMode::Lenient)).await;
    submit(&store, "a", 4).await;
    let session = store.session().await;
    let before = store.claimed(all_of(session, 2)).await;
    store.complete(before.tasks[0].lease).await;
    store.reopen().await;
    assert_eq!(settings(&store, "a").await, Some((7, Some(2))));
    assert_eq!(store.inner().queue_mode().await.ok(), Some(QueueMode::Lenient));
    let session = store.session().await;
    let claimed = store.claimed(all_of(session, 9)).await;
    let running = store.list(onward_store::TaskFilter { states: vec![TaskState::Running], ..Default::default() }).await;
    assert_eq!((running.len(), claimed.configuration), (2, before.configuration));
}
