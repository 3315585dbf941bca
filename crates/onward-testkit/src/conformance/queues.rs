//! Queues: weights, concurrency and modes.

use std::time::Duration;

use onward_store::{
    Claim, Claimed, ConcurrencyLimit, Lease, NewTask, OnDuplicate, Outcome, Priority, QueueChoice, QueueMode,
    QueueSettings, QueueTurn, Scope, SessionId, SetQueue, StoreReads, TaskState, UniqueKey, Write,
};

use crate::bench::{Bench, LEASE, after, all_of, name, task};

fn set(queue: &str) -> SetQueue {
    SetQueue::new(name(queue))
}

async fn settings(bench: &Bench, queue: &str) -> Option<(u32, Option<u32>)> {
    bench.queue(queue).await.map(|queue| (queue.weight, queue.concurrency))
}

async fn apply(bench: &Bench, set: SetQueue) {
    let outcome = bench.write(Write::SetQueue(set)).await;
    assert!(matches!(outcome, Outcome::QueueSet(_)), "{outcome:?}");
}

async fn submit(bench: &Bench, queue: &str, tasks: usize) {
    for _ in 0..tasks {
        bench.submit_new(NewTask { queue: name(queue), ..task("k") }).await;
    }
}

/// Limits the queue `a`, and submits more tasks to it than the limit allows.
async fn limited(bench: &Bench, concurrency: u32) -> SessionId {
    apply(bench, set("a").concurrency(concurrency)).await;
    submit(bench, "a", 6).await;
    bench.session().await
}

async fn leases(bench: &Bench, session: SessionId) -> Vec<Lease> {
    bench.claim(session, 100).await.iter().map(|task| task.lease).collect()
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
async fn three_queues(bench: &Bench) -> SessionId {
    for (queue, weight) in [("b", 1), ("c", 2), ("a", 3)] {
        apply(bench, set(queue).weight(weight)).await;
        submit(bench, queue, 24).await;
    }
    bench.session().await
}

pub async fn a_queue_has_a_weight_of_one_and_no_limit_unless_told(bench: Bench) {
    bench.submit("k").await;
    assert_eq!(settings(&bench, "default").await, Some((1, None)));
}

pub async fn setting_a_queue_answers_what_holds_now(bench: Bench) {
    let outcome = bench.write(Write::SetQueue(set("a").weight(3).concurrency(2))).await;
    assert_eq!(
        outcome,
        Outcome::QueueSet(QueueSettings { weight: 3, concurrency: Some(2), ..QueueSettings::default() })
    );
    assert_eq!(settings(&bench, "a").await, Some((3, Some(2))));
}

pub async fn what_is_not_named_stays_as_it_is(bench: Bench) {
    apply(&bench, set("a").weight(3).concurrency(2)).await;
    apply(&bench, set("a").weight(4)).await;
    assert_eq!(settings(&bench, "a").await, Some((4, Some(2))));
    apply(&bench, set("a").unlimited()).await;
    assert_eq!(settings(&bench, "a").await, Some((4, None)));
}

pub async fn a_queue_that_is_set_is_made(bench: Bench) {
    apply(&bench, set("a").weight(1)).await;
    assert_eq!(settings(&bench, "a").await, Some((1, None)));
}

pub async fn values_out_of_their_range_are_refused_with_the_range(bench: Bench) {
    for (set, range) in [
        (set("a").weight(0), "1 to 1000"),
        (set("a").weight(1001), "1 to 1000"),
        (set("a").concurrency(0), "1 to 1000000"),
        (set("a").concurrency(1_000_001), "1 to 1000000"),
    ] {
        let text = bench.invalid(Write::SetQueue(set)).await;
        assert!(text.contains(range), "{text}");
    }
    assert_eq!(bench.queue("a").await, None, "a refused change makes no queue");
}

pub async fn a_change_of_nothing_is_refused(bench: Bench) {
    bench.invalid(Write::SetQueue(set("a"))).await;
}

pub async fn a_refused_change_changes_nothing(bench: Bench) {
    apply(&bench, set("a").weight(3)).await;
    let both = SetQueue { concurrency: Some(ConcurrencyLimit::AtMost(0)), ..set("a").weight(5) };
    bench.invalid(Write::SetQueue(both)).await;
    assert_eq!(settings(&bench, "a").await, Some((3, None)));
}

pub async fn a_deleted_queue_is_made_again_with_the_defaults(bench: Bench) {
    apply(&bench, set("a").weight(3).concurrency(2)).await;
    bench.done(Write::DeleteQueue { queue: name("a") }).await;
    submit(&bench, "a", 3).await;
    assert_eq!(settings(&bench, "a").await, Some((1, None)));
    let session = bench.session().await;
    assert_eq!(bench.claim(session, 10).await.len(), 3);
}

pub async fn a_queue_runs_no_more_tasks_than_its_concurrency(bench: Bench) {
    let session = limited(&bench, 2).await;
    assert_eq!((bench.claim(session, 10).await.len(), bench.claim(session, 10).await.len()), (2, 0));
}

pub async fn a_concurrency_counts_what_all_sessions_run(bench: Bench) {
    let (one, other) = (limited(&bench, 3).await, bench.session().await);
    assert_eq!((bench.claim(one, 2).await.len(), bench.claim(other, 10).await.len()), (2, 1));
}

pub async fn a_concurrency_holds_for_all_kinds_together(bench: Bench) {
    let session = limited(&bench, 2).await;
    bench.submit_new(NewTask { queue: name("a"), priority: Priority::URGENT, ..task("other") }).await;
    let kinds: Vec<String> = bench.claim(session, 10).await.iter().map(|task| task.kind.to_string()).collect();
    assert_eq!(kinds, ["other", "k"]);
}

pub async fn the_lower_of_concurrency_and_what_a_claim_asks_for_holds(bench: Bench) {
    let session = limited(&bench, 3).await;
    assert_eq!(bench.claim_from(session, 10, &[("a", 2)]).await.len(), 2);
    assert_eq!(bench.claim_from(session, 10, &[("a", 2)]).await.len(), 1);
}

pub async fn a_full_queue_does_not_hold_up_another(bench: Bench) {
    let session = limited(&bench, 1).await;
    submit(&bench, "b", 2).await;
    assert_eq!(queues(&bench.claimed(all_of(session, 10)).await), "abb");
}

pub async fn a_limit_counts_what_ran_before_it_was_set(bench: Bench) {
    submit(&bench, "a", 4).await;
    let session = bench.session().await;
    bench.claim(session, 2).await;
    apply(&bench, set("a").concurrency(3)).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
}

pub async fn what_runs_beyond_a_new_limit_goes_on(bench: Bench) {
    let session = limited(&bench, 3).await;
    let leases = leases(&bench, session).await;
    apply(&bench, set("a").concurrency(1)).await;
    bench.complete(leases[0]).await;
    bench.complete(leases[1]).await;
    assert_eq!(bench.claim(session, 10).await, []);
    bench.complete(leases[2]).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
}

pub async fn a_higher_limit_and_none_give_room_at_once(bench: Bench) {
    let session = limited(&bench, 1).await;
    bench.claim(session, 10).await;
    apply(&bench, set("a").concurrency(2)).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
    apply(&bench, set("a").unlimited()).await;
    assert_eq!(bench.claim(session, 10).await.len(), 4);
}

/// Checks that exactly one more task may run after an attempt ended.
async fn gives_room(bench: &Bench, session: SessionId) {
    let others = bench.session().await;
    assert_eq!(bench.claim(others, 10).await.len(), 1);
    assert_eq!(bench.claim(session, 10).await, []);
}

pub async fn a_completion_gives_room(bench: Bench) {
    let session = limited(&bench, 2).await;
    let leases = leases(&bench, session).await;
    bench.complete(leases[0]).await;
    gives_room(&bench, session).await;
}

pub async fn a_completion_with_a_key_and_a_result_gives_room(bench: Bench) {
    apply(&bench, set("a").concurrency(1)).await;
    let unique = Some(UniqueKey { key: "x".into(), on_duplicate: OnDuplicate::Skip, keep_for: Duration::ZERO });
    bench.submit_new(NewTask { queue: name("a"), unique, ..task("k") }).await;
    submit(&bench, "a", 2).await;
    let session = bench.session().await;
    let lease = leases(&bench, session).await[0];
    bench.done(Write::Complete { lease, result: Some("done".into()) }).await;
    gives_room(&bench, session).await;
}

pub async fn a_failure_for_good_gives_room(bench: Bench) {
    let session = limited(&bench, 2).await;
    let leases = leases(&bench, session).await;
    bench.fail(leases[0], onward_store::AfterFailure::Dead).await;
    gives_room(&bench, session).await;
}

pub async fn a_task_that_is_tried_again_later_gives_room(bench: Bench) {
    let session = limited(&bench, 2).await;
    let leases = leases(&bench, session).await;
    bench.fail(leases[0], after(Duration::from_secs(60))).await;
    gives_room(&bench, session).await;
}

pub async fn a_task_held_on_to_takes_no_second_place(bench: Bench) {
    let session = limited(&bench, 2).await;
    let lease = leases(&bench, session).await[0];
    let hold = onward_store::AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let lease = bench.fail(lease, hold).await.lease.unwrap_or(lease);
    assert_eq!(bench.claim(session, 10).await, []);
    bench.complete(lease).await;
    gives_room(&bench, session).await;
}

pub async fn a_release_gives_room(bench: Bench) {
    let session = limited(&bench, 2).await;
    let leases = leases(&bench, session).await;
    bench.release(leases[0], Duration::ZERO).await;
    gives_room(&bench, session).await;
}

pub async fn a_confirmed_cancellation_gives_room(bench: Bench) {
    let session = limited(&bench, 2).await;
    let lease = leases(&bench, session).await[0];
    bench.cancel(lease.task).await;
    assert_eq!(bench.claim(session, 10).await, [], "asking is not yet stopping");
    bench.done(Write::ConfirmCancel { lease, reason: "stopped".into() }).await;
    gives_room(&bench, session).await;
}

pub async fn a_closed_session_gives_room(bench: Bench) {
    let session = limited(&bench, 2).await;
    bench.claim(session, 1).await;
    let other = bench.session().await;
    bench.claim(other, 1).await;
    bench.done(Write::CloseSession { session: other }).await;
    gives_room(&bench, session).await;
}

pub async fn a_lapsed_session_gives_room(bench: Bench) {
    let lapsing = limited(&bench, 2).await;
    bench.claim(lapsing, 1).await;
    bench.advance(LEASE / 2);
    let session = bench.session().await;
    bench.claim(session, 1).await;
    bench.advance(LEASE / 2);
    gives_room(&bench, session).await;
}

pub async fn a_refused_all_leaves_the_count_as_it_was(bench: Bench) {
    let session = limited(&bench, 2).await;
    let lease = leases(&bench, session).await[0];
    let unknown = Write::Cancel { task: onward_store::TaskId(99) };
    let writes = vec![
        Write::Complete { lease, result: None },
        Write::SetQueue(set("a").unlimited()),
        Write::Claim(all_of(session, 9)),
        unknown,
    ];
    bench.refused(Write::All(writes)).await;
    assert_eq!(bench.claim(session, 10).await, []);
    bench.complete(lease).await;
    gives_room(&bench, session).await;
}

pub async fn a_completion_and_a_claim_in_one_call_keep_a_queue_full(bench: Bench) {
    let session = limited(&bench, 1).await;
    let lease = leases(&bench, session).await[0];
    let outcomes = bench.apply(vec![Write::Complete { lease, result: None }, Write::Claim(all_of(session, 10))]).await;
    assert!(matches!(&outcomes[1], Outcome::Claimed(claimed) if claimed.tasks.len() == 1), "{outcomes:?}");
}

pub async fn an_end_in_a_full_queue_hints_at_work(bench: Bench) {
    let session = limited(&bench, 1).await;
    let lease = leases(&bench, session).await[0];
    let before = bench.store().changes().hint().work;
    bench.complete(lease).await;
    assert!(bench.store().changes().hint().work > before);
}

pub async fn a_change_of_a_queue_or_the_mode_hints_at_work(bench: Bench) {
    let mut before = bench.store().changes().hint().work;
    for write in [Write::SetQueue(set("a").weight(2)), Write::SetQueueMode(QueueMode::Lenient)] {
        bench.write(write).await;
        let now = bench.store().changes().hint().work;
        assert!(now > before);
        before = now;
    }
}

pub async fn the_mode_is_strict_unless_told(bench: Bench) {
    assert_eq!(bench.store().queue_mode().await.ok(), Some(QueueMode::Strict));
    bench.done(Write::SetQueueMode(QueueMode::Interleaved)).await;
    assert_eq!(bench.store().queue_mode().await.ok(), Some(QueueMode::Interleaved));
}

pub async fn strict_takes_the_highest_weight_first(bench: Bench) {
    let session = three_queues(&bench).await;
    let claimed = bench.claimed(all_of(session, 60)).await;
    assert_eq!(queues(&claimed), format!("{}{}{}", "a".repeat(24), "c".repeat(24), "b".repeat(12)));
}

pub async fn queues_of_one_weight_are_one_line_in_strict_mode(bench: Bench) {
    for queue in ["a", "b"] {
        apply(&bench, set(queue).weight(2)).await;
    }
    submit(&bench, "low", 1).await;
    for queue in ["b", "a", "b"] {
        submit(&bench, queue, 1).await;
    }
    bench.submit_new(NewTask { queue: name("a"), priority: Priority::URGENT, ..task("k") }).await;
    let session = bench.session().await;
    assert_eq!(queues(&bench.claimed(all_of(session, 10)).await), "abablow");
}

pub async fn interleaved_turns_follow_the_weights(bench: Bench) {
    let session = three_queues(&bench).await;
    let claimed = bench.claimed(by(QueueMode::Interleaved, session, 12)).await;
    assert_eq!(queues(&claimed), "abcacaabcaca");
}

pub async fn claims_of_one_task_each_are_as_fair_as_large_ones(bench: Bench) {
    let session = three_queues(&bench).await;
    let (mut given, mut turn) = (String::new(), QueueTurn::default());
    for _ in 0..12 {
        let choice = QueueChoice { mode: Some(QueueMode::Interleaved), turn, random: 0 };
        let claimed = bench.claimed(Claim { choice, ..all_of(session, 1) }).await;
        given += &queues(&claimed);
        turn = claimed.turn;
    }
    assert_eq!(given, "abcacaabcaca");
}

pub async fn a_queue_without_work_has_no_turn(bench: Bench) {
    let session = three_queues(&bench).await;
    bench.pause(Scope::Queue(name("c")), None).await;
    let claimed = bench.claimed(by(QueueMode::Interleaved, session, 8)).await;
    assert_eq!(queues(&claimed), "abaaabaa");
}

pub async fn a_full_queue_has_no_turn(bench: Bench) {
    let session = three_queues(&bench).await;
    apply(&bench, set("c").concurrency(1)).await;
    let claimed = bench.claimed(by(QueueMode::Interleaved, session, 9)).await;
    assert_eq!(queues(&claimed), "abcaaabaa");
}

pub async fn what_is_left_when_others_are_empty_gets_every_turn(bench: Bench) {
    let session = three_queues(&bench).await;
    for mode in [QueueMode::Interleaved, QueueMode::Lenient] {
        bench.claimed(by(mode, session, 30)).await;
    }
    assert_eq!(bench.claimed(by(QueueMode::Lenient, session, 100)).await.tasks.len(), 12);
}

pub async fn lenient_turns_go_to_every_queue(bench: Bench) {
    let session = three_queues(&bench).await;
    let given = queues(&bench.claimed(by(QueueMode::Lenient, session, 36)).await);
    let of = |queue| given.matches(queue).count();
    assert!(of("a") > of("b") && of("b") > 0 && of("c") > 0, "{given}");
}

pub async fn lenient_turns_follow_the_random_number(bench: Bench) {
    let session = three_queues(&bench).await;
    let mut first = String::new();
    for random in 0..12 {
        let choice = QueueChoice { mode: Some(QueueMode::Lenient), random, ..QueueChoice::default() };
        first += &queues(&bench.claimed(Claim { choice, ..all_of(session, 1) }).await);
    }
    assert!(first.contains('a') && first.contains(['b', 'c']), "{first}");
}

pub async fn within_a_queue_the_most_urgent_goes_first_in_every_mode(bench: Bench) {
    let session = three_queues(&bench).await;
    let urgent = NewTask { queue: name("a"), priority: Priority::URGENT, ..task("k") };
    for mode in QueueMode::ALL {
        let id = bench.submit_new(urgent.clone()).await;
        let claimed = bench.claimed(by(mode, session, 6)).await;
        let first = claimed.tasks.iter().find(|task| task.queue == name("a"));
        assert_eq!(first.map(|task| task.lease.task), Some(id), "{mode}");
    }
}

pub async fn a_claims_own_mode_holds_over_the_stores(bench: Bench) {
    let session = three_queues(&bench).await;
    bench.done(Write::SetQueueMode(QueueMode::Interleaved)).await;
    let own = bench.claimed(by(QueueMode::Strict, session, 6)).await;
    assert_eq!((queues(&own).as_str(), own.mode), ("aaaaaa", QueueMode::Strict));
    let stores = bench.claimed(all_of(session, 6)).await;
    assert_eq!((queues(&stores).as_str(), stores.mode), ("abcaca", QueueMode::Interleaved));
}

pub async fn a_claimed_task_tells_its_queues_weight(bench: Bench) {
    let session = three_queues(&bench).await;
    assert_eq!(bench.claim(session, 1).await[0].weight, 3);
}

pub async fn peek_follows_the_mode(bench: Bench) {
    three_queues(&bench).await;
    let queue = |peeked: onward_store::Result<Option<onward_store::TaskRecord>>| {
        peeked.ok().flatten().map(|task| task.queue.to_string())
    };
    let turn = bench.claimed(by(QueueMode::Interleaved, bench.session().await, 1)).await.turn;
    let choice = QueueChoice { mode: Some(QueueMode::Interleaved), turn, random: 0 };
    let interleaved = bench.store().peek(Claim { choice, ..all_of(SessionId(0), 1) }).await;
    let strict = bench.store().peek(all_of(SessionId(0), 1)).await;
    assert_eq!((queue(interleaved).as_deref(), queue(strict).as_deref()), (Some("b"), Some("a")));
}

pub async fn changes_of_pauses_queues_and_the_mode_are_counted(bench: Bench) {
    let session = bench.session().await;
    let pause = Write::Pause { scope: Scope::All, until: Some(bench.now().plus(Duration::from_secs(1))) };
    let mut before = bench.claimed(all_of(session, 0)).await.configuration;
    for write in [
        Write::SetQueue(set("a").concurrency(2)),
        Write::SetQueueMode(QueueMode::Lenient),
        Write::Pause { scope: Scope::Queue(name("a")), until: None },
        Write::Resume { scope: Scope::Queue(name("a")) },
        pause,
    ] {
        bench.write(write).await;
        let now = bench.claimed(all_of(session, 0)).await.configuration;
        assert!(now > before);
        before = now;
    }
    bench.advance(Duration::from_secs(1));
    assert!(bench.claimed(all_of(session, 0)).await.configuration > before, "a pause that ends by itself is a change");
}

pub async fn what_tasks_do_is_no_change_of_queues(bench: Bench) {
    let session = limited(&bench, 2).await;
    let before = bench.claimed(all_of(session, 1)).await.configuration;
    bench.write(Write::SetQueue(set("a"))).await;
    bench.done(Write::Resume { scope: Scope::All }).await;
    submit(&bench, "new", 1).await;
    assert_eq!(bench.claimed(all_of(session, 9)).await.configuration, before);
}

pub async fn settings_and_counts_outlive_a_reopening(mut bench: Bench) {
    apply(&bench, set("a").weight(7).concurrency(2)).await;
    bench.done(Write::SetQueueMode(QueueMode::Lenient)).await;
    submit(&bench, "a", 4).await;
    let session = bench.session().await;
    let before = bench.claimed(all_of(session, 2)).await;
    bench.complete(before.tasks[0].lease).await;
    bench.reopen().await;
    assert_eq!(settings(&bench, "a").await, Some((7, Some(2))));
    assert_eq!(bench.store().queue_mode().await.ok(), Some(QueueMode::Lenient));
    let session = bench.session().await;
    let claimed = bench.claimed(all_of(session, 9)).await;
    let running = bench.list(onward_store::TaskFilter { states: vec![TaskState::Running], ..Default::default() }).await;
    assert_eq!((running.len(), claimed.configuration), (2, before.configuration));
}
