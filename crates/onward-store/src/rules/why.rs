//! The reasons why a task does not run.

use std::iter;
use std::time::Duration;

use crate::api::completion::CompletionToken;
use crate::api::limit::{Limit, LimitScope};
use crate::api::name::Name;
use crate::api::orchestration::Hold;
use crate::api::reason::WaitReason;
use crate::api::served::{Served, ServedCode};
use crate::api::store::{SessionRecord, pause_holds};
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::bounds::NAMED_WORKERS;
use crate::rules::limit::{self, Bucket};
use crate::rules::session::may_take;

/// The facts about a task from which its reasons are derived.
#[derive(Debug, Clone)]
pub struct WaitFacts {
    /// The task.
    pub task: TaskId,
    /// The kind.
    pub kind: Name,
    /// The queue.
    pub queue: Name,
    /// The state.
    pub state: TaskState,
    /// The due time.
    pub run_at: Timestamp,
    /// The time at which the task expires unless an attempt has started; for an expired task, the
    /// time at which it did.
    pub expires_at: Option<Timestamp>,
    /// The deadline.
    pub deadline: Option<Timestamp>,
    /// The tasks that must end before it runs.
    pub blocked_by: Vec<TaskId>,
    /// The claim number and the time limit, if it waits for external completion.
    pub awaited: Option<(u32, Option<Timestamp>)>,
    /// The facts about the orchestration, if it is one.
    pub orchestration: Option<OrchestrationFacts>,
    /// The reason, if the task is an item of a pending batch or of a batch.
    pub aggregated: Option<WaitReason>,
    /// The pauses that apply to it, each with its end if it has one.
    pub pauses: Vec<(Scope, Option<Timestamp>)>,
    /// The limits that apply to it.
    pub limits: Vec<LimitUse>,
    /// The scope of a limit that tasks of other sub-queues can use up before it starts, although it
    /// is the first of its own.
    pub contended: Option<LimitScope>,
    /// The session for which its sub-queue is reserved, and until when.
    pub reserved: Option<(SessionId, Timestamp)>,
    /// The number of tasks of its queue, kind, group and affinity key that go before it, counted up
    /// to [`bounds::AHEAD`](crate::bounds::AHEAD).
    pub ahead: u64,
    /// The number of groups that go before its own if groups share its queue, counted up to
    /// [`bounds::AHEAD`](crate::bounds::AHEAD).
    pub groups_ahead: u64,
    /// The open sessions, oldest first.
    pub sessions: Vec<Worker>,
}

/// The facts about an orchestration from which its reasons are derived.
#[derive(Debug, Clone, Default)]
pub struct OrchestrationFacts {
    /// True if it has had a turn.
    pub has_begun: bool,
    /// The version of the code that began it.
    pub version: Option<u32>,
    /// The hold that prevents its turns.
    pub hold: Hold,
    /// True if messages wait for its next turn.
    pub has_messages: bool,
    /// The names of the events for which it waits.
    pub awaits: Vec<Name>,
    /// The live tasks whose ends it will receive, by number: the first
    /// [`bounds::NAMED_TASKS`](crate::bounds::NAMED_TASKS).
    pub tasks: Vec<TaskId>,
    /// The time until which it keeps signals, if it was never started.
    pub kept_until: Option<Timestamp>,
}

/// A session, and the time since the end of its lease.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The session.
    pub record: SessionRecord,
    /// The time since the end of its lease; zero if the lease has not ended.
    pub silent: Duration,
}

/// A limit that applies to a task, with its current use.
#[derive(Debug, Clone)]
pub struct LimitUse {
    /// The scope on which it was set.
    pub scope: LimitScope,
    /// The limit.
    pub limit: Limit,
    /// The number of running tasks that count towards it.
    pub running: u64,
    /// The token bucket.
    pub bucket: Bucket,
}

/// Returns every reason that holds now, in the order in which to remove them. Returns none for a
/// running task, or for one that has ended in a state other than expired. `now` is wall time and
/// `steady` is steady time.
#[must_use]
pub fn reasons(facts: &WaitFacts, now: Timestamp, steady: Duration) -> Vec<WaitReason> {
    if facts.state == TaskState::Expired {
        return facts.expires_at.map(|at| expired(facts, at)).into_iter().collect();
    }
    if !matches!(facts.state, TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting) {
        return Vec::new();
    }
    if let Some(OrchestrationFacts { hold: Hold::Unstarted, kept_until, .. }) = &facts.orchestration {
        return vec![WaitReason::Unstarted { until: *kept_until }];
    }
    let mut reasons = without_expiry(facts, now, steady);
    if let Some(at) = facts.expires_at.filter(|_| !reasons.is_empty()) {
        let is_named = matches!(reasons[0], WaitReason::Expired { .. });
        reasons.extend((!is_named).then(|| WaitReason::Expires { at, deadline: facts.deadline == Some(at) }));
    }
    reasons
}

/// Returns the reason of a task whose time to live or deadline has passed.
fn expired(facts: &WaitFacts, at: Timestamp) -> WaitReason {
    WaitReason::Expired { at, deadline: facts.deadline == Some(at) }
}

/// Returns the reasons why a task waits, except for its expiry.
fn without_expiry(facts: &WaitFacts, now: Timestamp, steady: Duration) -> Vec<WaitReason> {
    if let Some(at) = facts.expires_at.filter(|at| *at <= now) {
        return with_missing_worker(expired(facts, at), facts, now);
    }
    if let Some((claim, until)) = facts.awaited {
        let token = CompletionToken { task: facts.task, claim: Some(claim) };
        return with_missing_worker(WaitReason::Completion { token, until }, facts, now);
    }
    if let Some(reason) = &facts.aggregated {
        return with_missing_worker(reason.clone(), facts, now);
    }
    let mut reasons = blocking_reasons(facts, now);
    reasons.extend(facts.limits.iter().flat_map(|usage| limit_reasons(usage, steady)));
    reasons.extend(facts.reserved.map(|(session, until)| WaitReason::Reserved { session, until }));
    let lacks_code = reasons.iter().any(|reason| matches!(reason, WaitReason::NoCode { .. }));
    let may_start = reasons.is_empty() && facts.state != TaskState::Blocked;
    if facts.ahead > 0 {
        reasons.push(WaitReason::Behind { tasks: facts.ahead });
    }
    if facts.groups_ahead > 0 {
        reasons.push(WaitReason::Turn { groups: facts.groups_ahead });
    }
    if may_start {
        reasons.extend(contended(facts, steady));
    }
    let workers = Workers::of(facts, may_start.then(|| elapsed(facts.run_at, now)));
    if !lacks_code {
        reasons.extend(workers.missing().or_else(|| if may_start { workers.busy() } else { None }));
    }
    reasons
}

/// Returns a reason. If its time is over, also returns that no worker is there, because a worker
/// would have acted on it.
fn with_missing_worker(reason: WaitReason, facts: &WaitFacts, now: Timestamp) -> Vec<WaitReason> {
    let over_at = match &reason {
        WaitReason::Completion { until, .. } => *until,
        WaitReason::PendingBatch { ready_at: at, .. } | WaitReason::Expired { at, .. } => Some(*at),
        _ => None,
    };
    let over_at = over_at.filter(|at| *at <= now);
    let worker = over_at.and_then(|at| Workers::of(facts, Some(elapsed(at, now))).missing());
    iter::once(reason).chain(worker).collect()
}

/// Returns the time since a moment; zero if the clock was set back behind it.
fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    if since < now { now - since } else { Duration::ZERO }
}

/// Returns the reasons that come from a task itself, and its pauses. For an orchestration, pauses
/// come first, because no other reason matters during a pause. Missing code comes next, because the
/// orchestration cannot run without it.
fn blocking_reasons(facts: &WaitFacts, now: Timestamp) -> Vec<WaitReason> {
    let pauses = facts.pauses.iter().filter(|(_, until)| pause_holds(*until, now));
    let pauses = pauses.map(|(scope, until)| WaitReason::Paused { scope: scope.clone(), until: *until });
    let Some(orchestration) = &facts.orchestration else {
        return standing(facts, now).into_iter().chain(pauses).collect();
    };
    let is_paused = orchestration.hold.is_paused();
    let paused = is_paused.then_some(WaitReason::OrchestrationPaused { task: facts.task });
    let no_code = Workers::of(facts, None).no_code(orchestration);
    paused.into_iter().chain(pauses).chain(no_code).chain(waits_for(facts, orchestration, now)).collect()
}

/// Returns the reason that comes from a task itself.
fn standing(facts: &WaitFacts, now: Timestamp) -> Option<WaitReason> {
    match facts.state {
        TaskState::Blocked => Some(WaitReason::Blocked { by: facts.blocked_by.clone() }),
        TaskState::Scheduled => not_due(facts, now),
        _ => None,
    }
}

/// Returns the reason of a task that is not due yet.
fn not_due(facts: &WaitFacts, now: Timestamp) -> Option<WaitReason> {
    (facts.run_at > now).then_some(WaitReason::NotDue { run_at: facts.run_at })
}

/// Returns the reason that comes from an orchestration itself.
fn waits_for(facts: &WaitFacts, orchestration: &OrchestrationFacts, now: Timestamp) -> Option<WaitReason> {
    let OrchestrationFacts { has_begun, hold, has_messages, awaits, tasks, .. } = orchestration;
    let is_aside = *hold == Hold::PausedDue;
    if facts.state == TaskState::Waiting {
        return None;
    }
    // An orchestration with an approaching turn waits only for the time of that turn.
    let has_moment = facts.state == TaskState::Scheduled || is_aside;
    if !has_begun {
        let is_blocked = !has_moment && (!hold.is_paused() || !facts.blocked_by.is_empty());
        let blocked = is_blocked.then(|| WaitReason::Blocked { by: facts.blocked_by.clone() });
        return if has_moment { not_due(facts, now) } else { blocked };
    }
    if *has_messages {
        // A message would have woken a parked orchestration. This one was released with its
        // messages unread.
        return if has_moment { not_due(facts, now) } else { None };
    }
    let until = has_moment.then_some(facts.run_at);
    let is_over = until.is_some_and(|until| until <= now);
    (!is_over).then(|| WaitReason::Parked { until, events: awaits.clone(), tasks: tasks.clone() })
}

/// The sessions that may take a task.
struct Workers<'a> {
    facts: &'a WaitFacts,
    present: Vec<&'a SessionRecord>,
}

impl<'a> Workers<'a> {
    /// Returns the sessions of workers that are alive. `claimable` is the time for which a worker
    /// could have claimed the task, if one could.
    fn of(facts: &'a WaitFacts, claimable: Option<Duration>) -> Self {
        let claimable = claimable.unwrap_or_default();
        let is_present = |worker: &&Worker| {
            let Worker { record, silent } = worker;
            let serves = serves(record, facts);
            may_take(record.lease, *silent, record.running > 0, if serves { claimable } else { Duration::ZERO })
        };
        Self { facts, present: facts.sessions.iter().filter(is_present).map(|worker| &worker.record).collect() }
    }

    /// Returns the sessions that serve the task.
    fn serving(&self) -> impl Iterator<Item = &'a SessionRecord> {
        self.present.iter().copied().filter(|record| serves(record, self.facts))
    }

    /// Returns the names of the first [`NAMED_WORKERS`] sessions that satisfy a condition.
    fn named(&self, is_named: impl Fn(&Served) -> bool) -> Vec<String> {
        let named = self.present.iter().filter(|record| is_named(&record.serves));
        named.take(NAMED_WORKERS).map(|record| record.name.clone()).collect()
    }

    /// Returns the reason that no worker serves the task; `None` if one does.
    fn missing(&self) -> Option<WaitReason> {
        let WaitFacts { kind, queue, orchestration, .. } = self.facts;
        if self.present.is_empty() {
            return Some(WaitReason::NoWorker);
        }
        if self.serving().next().is_some() {
            return None;
        }
        if let Some(orchestration) = orchestration {
            return self.no_code(orchestration);
        }
        Some(WaitReason::NotServed {
            kind_served_by: self.named(|serves| serves.has_kind(kind)),
            queue_served_by: self.named(|serves| serves.has_queue(queue)),
            kind: kind.clone(),
            queue: queue.clone(),
        })
    }

    /// Returns the reason that workers are alive but none has the code of an orchestration.
    fn no_code(&self, orchestration: &OrchestrationFacts) -> Option<WaitReason> {
        if self.present.is_empty() || self.serving().next().is_some() {
            return None;
        }
        let (WaitFacts { kind, queue, .. }, version) = (self.facts, orchestration.version);
        let of_queue = self.present.iter().filter(|record| record.serves.has_queue(queue));
        let code = of_queue.flat_map(|record| record.serves.code.iter().flatten());
        let mut versions: Vec<ServedCode> = code.filter(|code| code.is_of(kind)).cloned().collect();
        versions.sort_unstable_by_key(|code| (code.since, code.version));
        versions.dedup();
        versions.truncate(NAMED_WORKERS);
        let code_served_by = self.named(|serves| serves.has_code(kind, version));
        Some(WaitReason::NoCode { kind: kind.clone(), queue: queue.clone(), version, versions, code_served_by })
    }

    /// Returns the reason that every worker which serves the task runs other tasks.
    fn busy(&self) -> Option<WaitReason> {
        let is_busy = self.serving().all(|worker| worker.running > 0);
        let busy = WaitReason::Slot {
            workers: self.serving().count() as u64,
            running: self.serving().map(|worker| worker.running).sum(),
        };
        is_busy.then_some(busy)
    }
}

/// Returns true if a session would claim the task, regardless of its free slots.
fn serves(record: &SessionRecord, facts: &WaitFacts) -> bool {
    match &facts.orchestration {
        Some(orchestration) => record.serves_orchestration(&facts.queue, &facts.kind, orchestration.version),
        None => record.serves(&facts.queue, &facts.kind),
    }
}

/// Returns the limit that tasks of other sub-queues can use up first.
fn contended(facts: &WaitFacts, steady: Duration) -> Option<WaitReason> {
    let contended = facts.contended.as_ref()?;
    let is_meant = |usage: &&LimitUse| match (&usage.scope, contended) {
        (LimitScope::Groups(_), LimitScope::Group(_)) => true,
        (scope, contended) => scope == contended,
    };
    let LimitUse { scope, limit, running, bucket } = facts.limits.iter().find(is_meant)?;
    let room = limit::room(*limit, *running, *bucket, steady) as u64;
    Some(WaitReason::Contended { limit_on: scope.clone(), room })
}

/// Returns the reasons that come from one limit: its concurrency, its rate, or both.
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
    use crate::api::limit::Rate;
    use crate::api::write::KindSelection;

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
            expires_at: None,
            deadline: None,
            blocked_by: Vec::new(),
            awaited: None,
            orchestration: None,
            aggregated: None,
            pauses: Vec::new(),
            limits: Vec::new(),
            contended: None,
            reserved: None,
            ahead: 0,
            groups_ahead: 0,
            sessions: vec![worker("all", Served::default())],
        }
    }

    fn worker(name: &str, serves: Served) -> Worker {
        let (id, opened_at, lease) = (SessionId(1), NOW, Duration::from_secs(60));
        let record = SessionRecord { id, name: name.to_owned(), opened_at, lease, running: 0, serves };
        Worker { record, silent: Duration::ZERO }
    }

    fn busy(worker: &Worker, running: u64) -> Worker {
        Worker { record: SessionRecord { running, ..worker.record.clone() }, ..worker.clone() }
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
        assert_eq!(
            said(Hold::PausedDue),
            [paused.clone(), WaitReason::Parked { until: Some(LATER), events: Vec::new(), tasks: Vec::new() }]
        );
        let due = WaitFacts { run_at: NOW, ..orchestration(TaskState::Blocked, held(Hold::PausedDue)) };
        assert_eq!(reasons(&due, NOW, Duration::ZERO), [paused]);
    }

    /// Shows: B6
    #[test]
    fn one_that_is_paused_does_not_wait_for_what_has_come() {
        let awaits = vec![name("paid")];
        let came = OrchestrationFacts {
            has_begun: true,
            hold: Hold::Paused,
            has_messages: true,
            awaits,
            ..OrchestrationFacts::default()
        };
        let said = reasons(&orchestration(TaskState::Blocked, came), NOW, Duration::ZERO);
        assert_eq!(said, [WaitReason::OrchestrationPaused { task: TaskId(1) }]);
    }

    fn with_code(named: &str, queues: &[&str], code: &[(&str, u32, u32)]) -> Worker {
        let code =
            code.iter().map(|(kind, since, version)| ServedCode { kind: name(kind), since: *since, version: *version });
        let serves = Served { code: Some(code.collect()), ..session(named, &["copy"], queues).record.serves };
        worker(named, serves)
    }

    /// Shows: B6
    #[test]
    fn one_whose_code_is_missing_says_so_before_what_it_waits_for() {
        let of_it = OrchestrationFacts { has_begun: true, version: Some(1), ..OrchestrationFacts::default() };
        let waits = WaitReason::Parked { until: Some(LATER), events: Vec::new(), tasks: Vec::new() };
        let said = |sessions: Vec<Worker>| {
            let facts = WaitFacts { sessions, ..orchestration(TaskState::Scheduled, of_it.clone()) };
            reasons(&facts, NOW, Duration::ZERO)
        };
        let none = with_code("none", &["slow"], &[("other", 0, 9)]);
        let newer = with_code("newer", &["slow"], &[("mail", 2, 3)]);
        let elsewhere = with_code("elsewhere", &["fast"], &[("mail", 1, 1)]);
        let text = |reasons: Vec<WaitReason>| reasons[0].to_string();
        let reported = said(vec![with_code("all", &["slow"], &[("mail", 0, 1)]), newer.clone()]);
        assert_eq!(reported, std::slice::from_ref(&waits));
        let reported = said(vec![none.clone()]);
        assert_eq!(reported[1..], [waits]);
        assert_eq!(text(reported), "no worker has the code of the orchestration `mail`; start one that registers it");
        let reported = text(said(vec![none.clone(), newer]));
        assert!(
            reported.contains("version 1 of the orchestration `mail` began it")
                && reported.contains("version 3, which goes on"),
            "{reported}"
        );
        let reported = text(said(vec![none, elsewhere]));
        assert!(
            reported.contains("no worker of the queue `slow`") && reported.contains("`elsewhere` have it"),
            "{reported}"
        );
    }

    /// Shows: B6
    #[test]
    fn a_worker_that_is_silent_and_left_a_task_where_it_is_does_not_count() {
        let silent = |silent| Worker { silent, ..worker("killed", Served::default()) };
        let minute = Duration::from_secs(60);
        let reported = |waited: Duration, worker| {
            let facts = WaitFacts { run_at: NOW, sessions: vec![worker], ..facts() };
            reasons(&facts, NOW.plus(waited), Duration::ZERO)
        };
        assert_eq!(reported(minute, silent(Duration::ZERO)), [], "its lease holds");
        assert_eq!(reported(minute / 2, silent(minute)), [], "it may be about to claim it");
        assert_eq!(reported(minute, silent(minute)), [WaitReason::NoWorker]);
        assert_eq!(
            reported(Duration::ZERO, busy(&silent(minute), 1)),
            [WaitReason::NoWorker],
            "it has lost what it held"
        );
    }

    /// Shows: B6, T6
    #[test]
    fn a_task_that_waits_names_when_it_expires_and_one_that_has_expired_nothing_else() {
        let (deadline, paused) = (Timestamp::MIN.plus(Duration::from_secs(9)), vec![(Scope::All, None)]);
        let waits = |deadline, pauses| WaitFacts {
            expires_at: Some(Timestamp::MIN.plus(Duration::from_secs(9))),
            deadline,
            pauses,
            ..facts()
        };
        let reported = |facts: &WaitFacts, now| reasons(facts, now, Duration::ZERO);
        assert_eq!(reported(&waits(None, Vec::new()), NOW), [], "a worker takes it");
        let blocked = waits(Some(deadline), paused.clone());
        let pause = WaitReason::Paused { scope: Scope::All, until: None };
        assert_eq!(reported(&blocked, NOW), [pause, WaitReason::Expires { at: deadline, deadline: true }]);
        assert_eq!(reported(&blocked, deadline), [WaitReason::Expired { at: deadline, deadline: true }]);
        let ended = WaitFacts { state: TaskState::Expired, ..waits(None, paused) };
        assert_eq!(reported(&ended, LATER), [WaitReason::Expired { at: deadline, deadline: false }]);
    }

    #[test]
    fn a_task_that_could_start_now_has_no_reason() {
        assert_eq!(reasons(&facts(), NOW, Duration::ZERO), []);
    }

    #[test]
    fn every_reason_is_reported_at_once() {
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

    fn session(named: &str, kinds: &[&str], queues: &[&str]) -> Worker {
        let names = |names: &[&str]| names.iter().copied().map(name).collect();
        worker(named, Served { queues: Some(names(queues)), kinds: KindSelection::Only(names(kinds)), code: None })
    }

    #[test]
    fn a_task_whose_workers_all_have_others_in_hand_waits_for_a_slot_behind_those_before_it() {
        let serving = session("busy", &["mail"], &["slow"]);
        let others = busy(&session("of others", &["copy"], &["slow"]), 9);
        let sessions = vec![busy(&serving, 1), busy(&serving, 4), others];
        let said = reasons(&WaitFacts { sessions, ahead: 3, ..facts() }, NOW, Duration::ZERO);
        assert_eq!(said, [WaitReason::Behind { tasks: 3 }, WaitReason::Slot { workers: 2, running: 5 }]);
    }

    #[test]
    fn a_task_with_a_worker_that_has_nothing_in_hand_does_not_wait_for_a_slot() {
        let sessions = [1, 0].map(|running| busy(&worker("all", Served::default()), running));
        let facts = WaitFacts { sessions: sessions.to_vec(), ..facts() };
        assert_eq!(reasons(&facts, NOW, Duration::ZERO), []);
    }

    #[test]
    fn a_task_that_is_held_back_does_not_wait_for_a_slot() {
        let sessions = vec![busy(&worker("all", Served::default()), 1)];
        let facts = WaitFacts { sessions, pauses: vec![(Scope::All, None)], ..facts() };
        assert_eq!(reasons(&facts, NOW, Duration::ZERO), [WaitReason::Paused { scope: Scope::All, until: None }]);
    }

    #[test]
    fn a_limit_that_others_can_use_up_is_named_with_its_room_if_nothing_else_holds_the_task_back() {
        let limit = |concurrency| Limit { concurrency: Some(concurrency), ..Limit::default() };
        let usage = |scope, limit| LimitUse { scope, limit, running: 1, bucket: Bucket::default() };
        let groups = LimitScope::Groups("a".to_owned());
        let limits = vec![usage(LimitScope::All, limit(9)), usage(groups.clone(), limit(3))];
        let contended = WaitFacts { limits, contended: Some(LimitScope::Group(name("ab"))), ..facts() };
        let reason = WaitReason::Contended { limit_on: groups, room: 2 };
        assert_eq!(reasons(&contended, NOW, Duration::ZERO), [reason]);
        let pauses = vec![(Scope::All, None)];
        let paused = reasons(&WaitFacts { pauses, ..contended }, NOW, Duration::ZERO);
        assert_eq!(paused, [WaitReason::Paused { scope: Scope::All, until: None }]);
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
