//! Why a task does not run.

use std::iter;
use std::time::Duration;

use crate::completion::CompletionToken;
use crate::flow::{Limit, LimitScope};
use crate::limits::NAMED_WORKERS;
use crate::name::Name;
use crate::orchestration::Hold;
use crate::reason::WaitReason;
use crate::rules::flow::Bucket;
use crate::served::Served;
use crate::store::{SessionRecord, pause_holds};
use crate::task::{SessionId, TaskId, TaskState};
use crate::timestamp::Timestamp;
use crate::write::Scope;

/// What is to be known of a live task to say why it does not run.
#[derive(Debug, Clone)]
pub struct WaitFacts {
    /// Which it is.
    pub task: TaskId,
    /// Its kind.
    pub kind: Name,
    /// Its queue.
    pub queue: Name,
    /// Where it stands.
    pub state: TaskState,
    /// When it is due.
    pub run_at: Timestamp,
    /// The tasks that have to end before it runs.
    pub blocked_by: Vec<TaskId>,
    /// If it waits to be finished from elsewhere: which claim of it, and until when.
    pub awaited: Option<(u32, Option<Timestamp>)>,
    /// If it is an orchestration: how it stands.
    pub orchestration: Option<OrchestrationFacts>,
    /// If it is collected with others, or was handed over with them: the reason for that.
    pub aggregated: Option<WaitReason>,
    /// The pauses that it falls under, and when they end by themselves.
    pub pauses: Vec<(Scope, Option<Timestamp>)>,
    /// The limits that it falls under.
    pub limits: Vec<LimitUse>,
    /// For which session its line is reserved, and until when.
    pub reserved: Option<(SessionId, Timestamp)>,
    /// How many tasks of its queue, kind, group and series go before it: counted up to [`limits::AHEAD`](crate::limits::AHEAD).
    pub ahead: u64,
    /// Where groups share its queue: how many go before its own, counted up to [`limits::AHEAD`](crate::limits::AHEAD).
    pub groups_ahead: u64,
    /// The open sessions, oldest first.
    pub sessions: Vec<SessionRecord>,
}

/// What is to be known of an orchestration to say what it waits for.
#[derive(Debug, Clone, Default)]
pub struct OrchestrationFacts {
    /// Whether it has had a turn.
    pub has_begun: bool,
    /// Whether it goes on.
    pub hold: Hold,
    /// The names of the events that it waits for.
    pub awaits: Vec<Name>,
    /// The tasks whose ends it hears of and that have not ended, by number: the first [`limits::NAMED_TASKS`](crate::limits::NAMED_TASKS).
    pub tasks: Vec<TaskId>,
    /// Until when it keeps what was sent to it, if it was never started.
    pub kept_until: Option<Timestamp>,
}

/// A limit that a task falls under, and how far it is used.
#[derive(Debug, Clone)]
pub struct LimitUse {
    /// On what it was set.
    pub scope: LimitScope,
    /// The limit.
    pub limit: Limit,
    /// How many tasks under it run.
    pub running: u64,
    /// The tokens under it.
    pub bucket: Bucket,
}

/// Every reason that holds now, in the order in which they are to be told; none for a task that runs or has ended.
#[must_use]
pub fn reasons(facts: &WaitFacts, now: Timestamp, steady: Duration) -> Vec<WaitReason> {
    if !matches!(facts.state, TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting) {
        return Vec::new();
    }
    if let Some((claim, until)) = facts.awaited {
        let token = CompletionToken { task: facts.task, claim: Some(claim) };
        return with_who_is_to_notice(WaitReason::Completion { token, until }, facts, now);
    }
    if let Some(reason) = &facts.aggregated {
        return with_who_is_to_notice(reason.clone(), facts, now);
    }
    if let Some(OrchestrationFacts { hold: Hold::Unstarted, kept_until, .. }) = &facts.orchestration {
        return vec![WaitReason::Unstarted { until: *kept_until }];
    }
    let mut reasons = standing(facts, now);
    let pauses = facts.pauses.iter().filter(|(_, until)| pause_holds(*until, now));
    reasons.extend(pauses.map(|(scope, until)| WaitReason::Paused { scope: scope.clone(), until: *until }));
    reasons.extend(facts.limits.iter().flat_map(|usage| limit_reasons(usage, steady)));
    reasons.extend(facts.reserved.map(|(session, until)| WaitReason::Reserved { session, until }));
    let may_start = reasons.is_empty() && facts.state != TaskState::Blocked;
    if facts.ahead > 0 {
        reasons.push(WaitReason::Behind { tasks: facts.ahead });
    }
    if facts.groups_ahead > 0 {
        reasons.push(WaitReason::Turn { groups: facts.groups_ahead });
    }
    let busy_workers = || if may_start { busy_workers(facts) } else { None };
    reasons.extend(missing_worker(facts).or_else(busy_workers));
    reasons
}

/// What waits for a moment that is over waits for a worker, which notices it.
fn with_who_is_to_notice(reason: WaitReason, facts: &WaitFacts, now: Timestamp) -> Vec<WaitReason> {
    let is_over = match &reason {
        WaitReason::Completion { until, .. } => until.is_some_and(|until| until <= now),
        WaitReason::Collecting { ripe_at, .. } => *ripe_at <= now,
        _ => false,
    };
    let worker = if is_over { missing_worker(facts) } else { None };
    iter::once(reason).chain(worker).collect()
}

/// What it waits for itself.
fn standing(facts: &WaitFacts, now: Timestamp) -> Vec<WaitReason> {
    let run_at = facts.run_at;
    let is_due = run_at <= now;
    let until = Some(run_at).filter(|_| facts.state == TaskState::Scheduled);
    let mut reasons = Vec::new();
    if let Some(OrchestrationFacts { has_begun, hold, awaits, tasks, .. }) = &facts.orchestration {
        reasons.extend(hold.is_paused().then_some(WaitReason::OrchestrationPaused { task: facts.task }));
        let is_parked = *has_begun && facts.state != TaskState::Waiting;
        // With a timer that is over it waits for its turn alone.
        if is_parked && *hold != Hold::Aside && !(until.is_some() && is_due) {
            reasons.push(WaitReason::Parked { until, events: awaits.clone(), tasks: tasks.clone() });
        }
        if is_parked || *hold == Hold::Aside {
            return reasons;
        }
    }
    match facts.state {
        TaskState::Blocked if reasons.is_empty() || !facts.blocked_by.is_empty() => {
            reasons.push(WaitReason::Blocked { by: facts.blocked_by.clone() });
        }
        TaskState::Scheduled if !is_due => reasons.push(WaitReason::NotDue { run_at }),
        _ => {}
    }
    reasons
}

fn missing_worker(facts: &WaitFacts) -> Option<WaitReason> {
    let WaitFacts { kind, queue, sessions, .. } = facts;
    if sessions.is_empty() {
        return Some(WaitReason::NoWorker);
    }
    if workers(facts).next().is_some() {
        return None;
    }
    let named = |is_near: &dyn Fn(&Served) -> bool| {
        let near = sessions.iter().filter(|session| is_near(&session.serves));
        near.take(NAMED_WORKERS).map(|session| session.name.clone()).collect()
    };
    Some(WaitReason::NotServed {
        kind_served_by: named(&|serves| serves.has_kind(kind)),
        queue_served_by: named(&|serves| serves.has_queue(queue)),
        kind: kind.clone(),
        queue: queue.clone(),
    })
}

/// That every worker which serves a task has others in hand.
fn busy_workers(facts: &WaitFacts) -> Option<WaitReason> {
    let is_busy = workers(facts).all(|worker| worker.running > 0);
    let busy = WaitReason::Slot {
        workers: workers(facts).count() as u64,
        running: workers(facts).map(|worker| worker.running).sum(),
    };
    is_busy.then_some(busy)
}

/// The sessions that serve a task.
fn workers(facts: &WaitFacts) -> impl Iterator<Item = &SessionRecord> {
    facts.sessions.iter().filter(|session| session.serves(&facts.queue, &facts.kind))
}

fn limit_reasons(usage: &LimitUse, steady: Duration) -> Vec<WaitReason> {
    let LimitUse { scope, limit, running, bucket } = usage;
    let mut reasons = Vec::new();
    if let Some(concurrency) = limit.concurrency.filter(|concurrency| u64::from(*concurrency) <= *running) {
        reasons.push(WaitReason::Concurrency { limit_on: scope.clone(), concurrency, running: *running });
    }
    if let Some(rate) = limit.rate {
        let next = bucket.until_token(rate, steady);
        if !next.is_zero() {
            reasons.push(WaitReason::Rate { limit_on: scope.clone(), rate, next });
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Rate;
    use crate::write::KindSelection;

    const NOW: Timestamp = Timestamp::MIN;
    const LATER: Timestamp = Timestamp::MAX;

    fn name(name: &str) -> Name {
        name.parse().unwrap()
    }

    fn facts() -> WaitFacts {
        WaitFacts {
            task: TaskId(1),
            kind: name("mail"),
            queue: name("slow"),
            state: TaskState::Waiting,
            run_at: LATER,
            blocked_by: Vec::new(),
            awaited: None,
            orchestration: None,
            aggregated: None,
            pauses: Vec::new(),
            limits: Vec::new(),
            reserved: None,
            ahead: 0,
            groups_ahead: 0,
            sessions: vec![worker("all", Served::default())],
        }
    }

    fn worker(name: &str, serves: Served) -> SessionRecord {
        let (id, opened_at, lease) = (SessionId(1), NOW, Duration::from_secs(60));
        SessionRecord { id, name: name.to_owned(), opened_at, lease, running: 0, serves }
    }

    fn orchestration(state: TaskState, facts_of_it: OrchestrationFacts) -> WaitFacts {
        WaitFacts { state, orchestration: Some(facts_of_it), ..facts() }
    }

    #[test]
    fn a_parked_orchestration_says_all_that_it_waits_for() {
        let (events, tasks) = (vec![name("paid"), name("update.address")], vec![TaskId(7), TaskId(9)]);
        let of_it = OrchestrationFacts { has_begun: true, awaits: events, tasks, ..OrchestrationFacts::default() };
        let said = reasons(&orchestration(TaskState::Scheduled, of_it), NOW, Duration::ZERO);
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        let timer = format!("its timer, which is due at {LATER}");
        let text = format!("the event `paid`, or the update `address`, or the end of task 7 or 9, or {timer}");
        assert_eq!(said, [format!("it waits for {text}")]);
    }

    #[test]
    fn one_that_says_nothing_of_what_it_waits_for_waits_for_a_message() {
        let of_it = OrchestrationFacts { has_begun: true, ..OrchestrationFacts::default() };
        let said = reasons(&orchestration(TaskState::Blocked, of_it), NOW, Duration::ZERO);
        assert_eq!(said[0].to_string(), "it waits for a message, such as an event");
    }

    #[test]
    fn one_that_was_never_started_waits_for_that_alone() {
        let of_it = OrchestrationFacts { hold: Hold::Unstarted, ..OrchestrationFacts::default() };
        let unstarted = WaitFacts { sessions: Vec::new(), ..orchestration(TaskState::Scheduled, of_it) };
        assert_eq!(reasons(&unstarted, NOW, Duration::ZERO), [WaitReason::Unstarted { until: None }]);
    }

    #[test]
    fn one_that_is_paused_says_so_before_what_it_waits_for() {
        let paused = WaitReason::OrchestrationPaused { task: TaskId(1) };
        let parked = WaitReason::Parked { until: None, events: Vec::new(), tasks: Vec::new() };
        let held = |hold| OrchestrationFacts { has_begun: true, hold, ..OrchestrationFacts::default() };
        let said = |hold| reasons(&orchestration(TaskState::Blocked, held(hold)), NOW, Duration::ZERO);
        assert_eq!(said(Hold::Paused), [paused.clone(), parked]);
        assert_eq!(said(Hold::Aside), [paused]);
    }

    #[test]
    fn a_task_that_could_start_now_has_no_reason() {
        assert_eq!(reasons(&facts(), NOW, Duration::ZERO), []);
    }

    #[test]
    fn every_reason_is_told_at_once() {
        let rate = Rate { tasks: 1, per: Duration::from_secs(1), burst: 1 };
        let usage = LimitUse {
            scope: LimitScope::All,
            limit: Limit { concurrency: Some(2), rate: Some(rate), ..Limit::default() },
            running: 2,
            bucket: Bucket::default().take(rate, 1, Duration::ZERO),
        };
        let facts = WaitFacts {
            state: TaskState::Scheduled,
            pauses: vec![(Scope::All, None)],
            limits: vec![usage],
            reserved: Some((SessionId(7), Timestamp::MAX)),
            ahead: 3,
            groups_ahead: 2,
            sessions: Vec::new(),
            ..facts()
        };
        assert_eq!(
            reasons(&facts, NOW, Duration::ZERO),
            [
                WaitReason::NotDue { run_at: LATER },
                WaitReason::Paused { scope: Scope::All, until: None },
                WaitReason::Concurrency { limit_on: LimitScope::All, concurrency: 2, running: 2 },
                WaitReason::Rate { limit_on: LimitScope::All, rate, next: Duration::from_secs(1) },
                WaitReason::Reserved { session: SessionId(7), until: Timestamp::MAX },
                WaitReason::Behind { tasks: 3 },
                WaitReason::Turn { groups: 2 },
                WaitReason::NoWorker,
            ]
        );
    }

    fn session(named: &str, kinds: &[&str], queues: &[&str]) -> SessionRecord {
        let names = |names: &[&str]| names.iter().copied().map(name).collect();
        worker(named, Served { queues: Some(names(queues)), kinds: KindSelection::Only(names(kinds)) })
    }

    #[test]
    fn a_task_whose_workers_all_have_others_in_hand_waits_for_a_slot_behind_those_before_it() {
        let busy = |running| SessionRecord { running, ..session("busy", &["mail"], &["slow"]) };
        let others = SessionRecord { running: 9, ..session("of others", &["copy"], &["slow"]) };
        let sessions = vec![busy(1), busy(4), others];
        let said = reasons(&WaitFacts { sessions, ahead: 3, ..facts() }, NOW, Duration::ZERO);
        assert_eq!(said, [WaitReason::Behind { tasks: 3 }, WaitReason::Slot { workers: 2, running: 5 }]);
    }

    #[test]
    fn a_task_with_a_worker_that_has_nothing_in_hand_does_not_wait_for_a_slot() {
        let sessions = [1, 0].map(|running| SessionRecord { running, ..worker("all", Served::default()) });
        let facts = WaitFacts { sessions: sessions.to_vec(), ..facts() };
        assert_eq!(reasons(&facts, NOW, Duration::ZERO), []);
    }

    #[test]
    fn a_task_that_is_held_back_does_not_wait_for_a_slot() {
        let sessions = vec![SessionRecord { running: 1, ..worker("all", Served::default()) }];
        let facts = WaitFacts { sessions, pauses: vec![(Scope::All, None)], ..facts() };
        assert_eq!(reasons(&facts, NOW, Duration::ZERO), [WaitReason::Paused { scope: Scope::All, until: None }]);
    }

    #[test]
    fn workers_that_serve_its_kind_or_its_queue_alone_are_named() {
        let sessions = vec![
            session("kind", &["mail", "copy"], &["fast"]),
            session("queue", &["copy"], &["slow"]),
            session("neither", &["copy"], &["fast"]),
        ];
        let missing = WaitReason::NotServed {
            kind: name("mail"),
            queue: name("slow"),
            kind_served_by: vec!["kind".to_owned()],
            queue_served_by: vec!["queue".to_owned()],
        };
        assert_eq!(reasons(&WaitFacts { sessions: sessions.clone(), ..facts() }, NOW, Duration::ZERO), [missing]);
        let served = [sessions, vec![session("both", &["mail"], &["slow"])]].concat();
        assert_eq!(reasons(&WaitFacts { sessions: served, ..facts() }, NOW, Duration::ZERO), []);
    }

    #[test]
    fn a_task_that_runs_waits_for_nothing() {
        let facts = WaitFacts { state: TaskState::Running, sessions: Vec::new(), ..facts() };
        assert_eq!(reasons(&facts, NOW, Duration::ZERO), []);
    }
}
