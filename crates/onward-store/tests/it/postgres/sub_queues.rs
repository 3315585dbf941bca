//! Claims of few tasks among waiting tasks of many groups, kinds and queues. A claim reads the
//! first task of all sub-queues, and into as few of them as possible.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, KindSelection, LimitScope, ManualClock, MemoryStore, Name, NewTask, OpenSession, Outcome, Priority,
    QueueMode, Rate, Scope, SessionId, SetLimit, Store, TaskId, Write,
};

use super::fixture::options;
use super::server::{open, url};

/// The number of groups. It is so large that a claim of few tasks does not read into most
/// sub-queues.
const GROUPS: usize = 40;

/// The number of tasks in each group.
const EACH: usize = 3;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Returns submits of tasks whose order is unrelated to the names of their sub-queues: priorities,
/// groups and kinds repeat at different intervals.
fn submits() -> Vec<Write> {
    let task = |number: usize| {
        let mut new = NewTask::new(if number.is_multiple_of(3) { "mail" } else { "letter" }).unwrap();
        new.group = Some(name(&format!("group {}", number * 7 % GROUPS)));
        new.queue = name(if number.is_multiple_of(5) { "slow" } else { "default" });
        new.priority = Priority(u8::try_from(number * 11 % 4).unwrap());
        Write::Submit(Box::new(new))
    };
    (0..GROUPS * EACH).map(task).collect()
}

async fn session(store: &dyn Store) -> SessionId {
    let open = OpenSession::new("node", Duration::from_secs(600));
    let outcome = store.apply(vec![Write::OpenSession(open)]).await.unwrap().remove(0);
    let Outcome::SessionOpened(session) = outcome else { panic!("{outcome:?}") };
    session
}

/// Claims a few tasks at a time until none is left, with the completions of each claim before the
/// next. Returns the numbers that each claim returned.
async fn claimed(store: &dyn Store, before: &[Write], claim: impl Fn(SessionId) -> Claim) -> Vec<Vec<TaskId>> {
    let session = session(store).await;
    store.apply(submits()).await.unwrap();
    store.apply(before.to_vec()).await.unwrap();
    let (mut all, mut writes) = (Vec::new(), Vec::new());
    loop {
        writes.push(Write::Claim(claim(session)));
        let outcome = store.apply(std::mem::take(&mut writes)).await.unwrap().pop().unwrap();
        let Outcome::Claimed(claimed) = outcome else { panic!("{outcome:?}") };
        if claimed.tasks.is_empty() {
            return all;
        }
        all.push(claimed.tasks.iter().map(|task| task.lease.task).collect());
        // The first task of each claim keeps running, so that limits hold others back.
        writes.extend(claimed.tasks.iter().skip(1).map(|task| Write::Complete { lease: task.lease, result: None }));
    }
}

async fn agree(before: &[Write], claim: impl Fn(SessionId) -> Claim + Copy) {
    let Some(url) = url() else { return };
    let clock = Arc::new(ManualClock::default());
    let store = open(&url, options().clock(clock.clone())).await;
    let expected = claimed(&MemoryStore::with_clock(clock), before, claim).await;
    assert!(expected.len() > 3, "{expected:?}");
    assert_eq!(claimed(&store, before, claim).await, expected);
}

#[tokio::test]
async fn a_small_claim_takes_the_first_of_very_many_sub_queues() {
    agree(&[], |session| Claim::any(session, 4)).await;
}

#[tokio::test]
async fn a_claim_of_one_kind_skips_earlier_sub_queues_of_another() {
    agree(&[], |session| Claim { kinds: KindSelection::Only([name("mail")].into()), ..Claim::any(session, 4) }).await;
}

#[tokio::test]
async fn a_claim_skips_all_blocked_sub_queues() {
    let pause = |number| Write::Pause { scope: Scope::Group(name(&format!("group {number}"))), until: None };
    let paused: Vec<Write> = (0..GROUPS / 2).map(pause).collect();
    agree(&paused, |session| Claim::any(session, 4)).await;
}

#[tokio::test]
async fn a_small_claim_takes_from_many_sub_queues_what_their_limits_leave() {
    let of_groups = SetLimit::new(LimitScope::Groups("group ".into()));
    let rate = Rate { tasks: 1, per: Duration::from_secs(3600), burst: 2 };
    agree(&[Write::SetLimit(of_groups.concurrency(1).rate(rate))], |session| Claim::any(session, 4)).await;
}

#[tokio::test]
async fn a_small_claim_takes_from_many_sub_queues_that_share_a_queue_in_turn() {
    let weights = [Write::SetLimit(SetLimit::new(LimitScope::Group(name("group 3"))).weight(3))];
    agree(&weights, |session| Claim::any(session, 4)).await;
}

#[tokio::test]
async fn a_small_claim_takes_from_queues_with_many_sub_queues_in_turn() {
    agree(&[Write::SetQueueMode(QueueMode::Interleaved)], |session| Claim::any(session, 4)).await;
}
