//! Generates sequences. They use few names, keys and durations, so that collisions are frequent.

use std::time::Duration;

use bytes::Bytes;
use onward_store::rules::retry::{Backoff, FailureClass, RetryPolicy};
use onward_store::{
    AfterFailure, Aggregate, BulkVerb, ByteProgress, CompletionWait, ConcurrencyLimit, Dependencies, Dependency,
    ExternalCompletion, GroupShare, Io, KindSelection, LimitScope, Name, NewTask, OnDependencyFailure, OnDuplicate,
    OutputStream, Priority, Prune, QueueMode, QueueSelection, Rate, RateLimit, Scope, Served, ServedCode, SetLimit,
    SetQueue, Tags, TaskFilter, TaskId, TaskState, Timestamp, Ttl, TtlFrom, UniqueKey, When, bounds,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{documents, orchestrations, schedules};
use crate::model_based::steps::{NextTurn, Operation, Pick, Step, TurnOperation};
use crate::test_store::name;

const MICROSECOND: Duration = Duration::from_micros(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Generates sequences of up to `steps` steps.
pub fn sequences(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = step().prop_map(|step| vec![step]);
    vec(prop_oneof![40 => step, 1 => awaiting()], 1..=steps).prop_map(|steps| steps.concat())
}

/// Generates sequences of up to `steps` steps that also contain parked orchestrations, and crowds.
pub(in crate::model_based) fn sequences_with_orchestrations(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = step().prop_map(|step| vec![step]);
    vec(prop_oneof![12 => step, 2 => parked(), 1 => awaiting(), 2 => crowd()], 1..=steps)
        .prop_map(|steps| steps.concat())
}

/// Generates an orchestration that starts and parks, and may then be paused or signalled.
fn parked() -> impl Strategy<Value = Vec<Step>> {
    let after = subsequence(vec![Operation::PauseOrchestration(Pick(0)), Operation::Signal(Pick(0))], 0..=2);
    let until = option::of(select(vec![SECOND, MINUTE]));
    (kind(), until, after).prop_map(|(kind, until, after)| {
        let orchestration = NewTask { orchestration: true, ..NewTask::of(kind) };
        let steps = [start(orchestration), vec![claim_of_all()], vec![parking(until, Vec::new())], after];
        steps.into_iter().map(Step::Apply).collect()
    })
}

/// Generates an orchestration or a run that awaits tasks, and ends of these with turns, planned on
/// each other or not. It may be paused or signalled before them.
fn awaiting() -> impl Strategy<Value = Vec<Step>> {
    let kind = select(vec!["copy", "mail", "run:copy"]).prop_map(name);
    let before = subsequence(vec![Operation::PauseOrchestration(Pick(2)), Operation::Signal(Pick(2))], 0..=1);
    let before = prop_oneof![4 => Just(Vec::new()), 1 => before];
    let ends = vec(orchestrations::end_with_turn(), 1..4);
    let (activities, until) = (vec(new_task(), 1..3), option::of(select(vec![SECOND, MINUTE])));
    let orchestration = (kind, option::of(group()), option::of(affinity_key()));
    (orchestration, activities, until, before, ends, option::of(pick())).prop_map(
        |((kind, group, affinity), activities, until, before, ends, retried)| {
            let orchestration = NewTask { orchestration: true, group, affinity, ..NewTask::of(kind) };
            let activity = |(reference, new): (u64, NewTask)| {
                let (kind, queue, group) = (new.kind, new.queue, new.group);
                let parent = Some(TaskId(0));
                NewTask { parent, report: Some(reference), queue, group, ..NewTask::of(kind) }
            };
            let activities = (0..).zip(activities).map(activity).collect();
            let ends = ends.into_iter().map(|end| Operation::EndWithTurn(Box::new(end))).collect();
            let parking = vec![parking(until, activities)];
            let retry = retried.into_iter().map(Operation::Retry).collect();
            let steps =
                [start(orchestration), vec![claim_of_all()], parking, vec![claim_of_all()], before, ends, retry];
            steps.into_iter().map(Step::Apply).collect()
        },
    )
}

/// Generates tasks that compete for the room of limits. Sessions may have started some before, so
/// that others are reserved for them.
fn crowd() -> impl Strategy<Value = Vec<Step>> {
    let open = Operation::OpenSession { lease: MINUTE, serves: Served::default() };
    let claims = || vec((pick(), 1..3usize).prop_map(|(session, limit)| claim_of(session, limit)), 0..3);
    let submits = || vec(competitor().prop_map(|new| Operation::Submit(Box::new(new))), 2..7);
    let limits = vec(set_limit().prop_map(Operation::SetLimit), 1..4);
    let queues = vec(set_queue().prop_map(Operation::SetQueue), 0..2);
    let mode = option::weighted(0.5, mode().prop_map(Operation::SetQueueMode));
    (submits(), claims(), (limits, queues, mode), submits(), claims()).prop_map(
        move |(before, started, (limits, queues, mode), submits, claims)| {
            let open = vec![open.clone(), open.clone()];
            let mode = mode.into_iter().collect();
            let steps = [open, before, started, queues, limits, mode, submits, claims];
            steps.into_iter().map(Step::Apply).collect()
        },
    )
}

/// Generates a task that is due at once.
fn competitor() -> impl Strategy<Value = NewTask> {
    let priority = select(vec![32u8, 128, 128]).prop_map(Priority);
    let (group, affinity) = (option::weighted(0.6, group()), option::weighted(0.4, affinity_key()));
    (kind(), queue(), priority, group, affinity, proptest::bool::weighted(0.2)).prop_map(
        |(kind, queue, priority, group, affinity, orchestration)| {
            let new = NewTask { queue, priority, group, affinity, ..NewTask::of(kind) };
            NewTask { orchestration, ..new }
        },
    )
}

fn start(orchestration: NewTask) -> Vec<Operation> {
    let open = Operation::OpenSession { lease: MINUTE, serves: Served::default() };
    vec![open, Operation::Submit(Box::new(orchestration))]
}

fn claim_of_all() -> Operation {
    claim_of(Pick(0), 64)
}

/// Returns a session's claim of all queues and kinds.
fn claim_of(session: Pick, limit: usize) -> Operation {
    Operation::Claim {
        session,
        queues: QueueSelection::All,
        kinds: KindSelection::All,
        orchestrations: true,
        limit,
        mode: None,
        random: 0,
        least: None,
    }
}

fn parking(until: Option<Duration>, submits: Vec<NewTask>) -> Operation {
    Operation::Turn(Box::new(TurnOperation {
        lease: Pick(0),
        events: 1,
        behind: 0,
        consumed: 64,
        status: None,
        values: Vec::new(),
        tags: Vec::new(),
        submits,
        cancels: Vec::new(),
        withdraws: Vec::new(),
        leaves_unread: false,
        next: NextTurn::Park(until),
    }))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => vec(operation(), 1..=5).prop_map(Step::Apply),
        4 => forward().prop_map(Step::Advance),
        1 => select(vec![MICROSECOND, SECOND, MINUTE]).prop_map(Step::SetBack),
        1 => Just(Step::Reopen),
    ]
}

fn forward() -> impl Strategy<Value = Duration> {
    let short = select(vec![
        MICROSECOND,
        Duration::from_millis(100),
        SECOND,
        Duration::from_secs(5),
        Duration::from_secs(10),
        MINUTE,
    ]);
    prop_oneof![30 => short, 1 => Just(bounds::SESSION_KEPT)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let write = prop_oneof![40 => single(), 1 => Just(Operation::All(vec![]))];
    prop_oneof![
        12 => single(),
        1 => vec(write, 0..=4).prop_map(Operation::All),
    ]
}

/// Generates a single operation. It is boxed because its strategy is large and is used several
/// times.
fn single() -> BoxedStrategy<Operation> {
    prop_oneof![
        8 => new_task().prop_map(|new| Operation::Submit(Box::new(new))).boxed(),
        8 => claim().boxed(),
        10 => end_of_attempt().boxed(),
        4 => session().boxed(),
        4 => control().boxed(),
        2 => removal().boxed(),
        4 => schedules::operation().boxed(),
        2 => documents::operation().boxed(),
        4 => orchestrations::operation().boxed(),
        2 => bulk().boxed(),
        1 => Just(Operation::Sweep),
    ]
    .boxed()
}

fn session() -> impl Strategy<Value = Operation> {
    let lease = select(vec![Duration::from_millis(99), Duration::from_millis(100), SECOND, Duration::from_secs(10)]);
    prop_oneof![
        3 => (lease, served()).prop_map(|(lease, serves)| Operation::OpenSession { lease, serves }),
        2 => pick().prop_map(Operation::RenewSession),
        1 => pick().prop_map(Operation::CloseSession),
        1 => pick().prop_map(Operation::Retire),
        1 => pick().prop_map(Operation::SaveCheckpoint),
    ]
}

/// Generates what a session serves: mostly everything.
fn served() -> impl Strategy<Value = Served> {
    let queues = option::weighted(0.3, vec(queue(), 0..2));
    let matching = || KindSelection::matching(vec![name("mail")], vec!["co".to_owned()]);
    let kinds = prop_oneof![
        3 => Just(KindSelection::All),
        1 => vec(kind(), 0..2).prop_map(KindSelection::Only),
        1 => Just(matching()),
    ];
    let versions = (kind(), 0..2u32, 0..2u32);
    let code = versions.prop_map(|(kind, since, later)| ServedCode { kind, since, version: since + later });
    (queues, kinds, option::weighted(0.3, vec(code, 0..3))).prop_map(|(queues, kinds, code)| Served {
        queues,
        kinds,
        code,
    })
}

fn claim() -> impl Strategy<Value = Operation> {
    let some_queues = vec((queue(), 0..4usize), 0..3).prop_map(once_each).prop_map(QueueSelection::Only);
    let queues = prop_oneof![3 => Just(QueueSelection::All), 1 => some_queues];
    let some_kinds = vec(kind(), 0..3).prop_map(KindSelection::Only);
    let prefixes = vec(select(vec!["", "c", "co", "copy", "copy:", "x"]).prop_map(str::to_owned), 0..3);
    let matching = (vec(kind(), 0..2), prefixes).prop_map(|(kinds, prefixes)| KindSelection::matching(kinds, prefixes));
    let kinds = prop_oneof![3 => Just(KindSelection::All), 1 => some_kinds, 1 => matching];
    let kinds = (kinds, proptest::bool::weighted(0.7));
    let choice = (option::weighted(0.2, mode()), 0..4u64);
    let least = option::weighted(0.2, select(vec![Priority(0), Priority::NORMAL, Priority(129), Priority::URGENT]));
    (pick(), queues, kinds, 0..6usize, choice, least).prop_map(
        |(session, queues, (kinds, orchestrations), limit, (mode, random), least)| Operation::Claim {
            session,
            queues,
            kinds,
            orchestrations,
            limit,
            mode,
            random,
            least,
        },
    )
}

fn once_each(mut queues: Vec<(Name, usize)>) -> Vec<(Name, usize)> {
    queues.sort();
    queues.dedup_by(|one, other| one.0 == other.0);
    queues
}

fn end_of_attempt() -> impl Strategy<Value = Operation> {
    let result =
        option::of(select(vec![b"".as_slice(), b"result", &[0; 40]])).prop_map(|result| result.map(Into::into));
    let fraction = option::of(select(vec![-1.0f32, 0.0, 0.25, 1.0, 7.0, f32::NAN]));
    prop_oneof![
        4 => (pick(), result).prop_map(|(lease, result)| Operation::Complete { lease, result }),
        4 => (pick(), after_failure()).prop_map(|(lease, next)| Operation::Fail { lease, next }),
        2 => (pick(), delay()).prop_map(|(lease, after)| Operation::Release { lease, after }),
        2 => (pick(), checkpoint(), on_failure()).prop_map(|(lease, checkpoint, on_failure)| Operation::AwaitChildren { lease, checkpoint, on_failure }),
        1 => pick().prop_map(Operation::ConfirmCancel),
        2 => (pick(), completion_wait()).prop_map(|(lease, wait)| Operation::AwaitCompletion { lease, wait }),
        2 => (pick(), any::<bool>(), external_completion()).prop_map(|(lease, by_number, completion)| Operation::CompleteExternally { lease, by_number, completion }),
        1 => (pick(), queue()).prop_map(|(task, queue)| Operation::Move { task, queue }),
        1 => (pick(), fraction, bytes_done()).prop_map(|(lease, fraction, bytes)| Operation::Report { lease, fraction, bytes }),
        1 => (pick(), io()).prop_map(|(lease, io)| Operation::RecordIo { lease, io }),
        2 => append_output(),
        1 => (pick(), stream(), 0..9u32).prop_map(|(lease, stream, length)| Operation::OutputIsResult { lease, stream, length }),
    ]
}

/// Appends, most of which continue where the output may end. Few are so large that the middle is
/// dropped of what follows them.
fn append_output() -> impl Strategy<Value = Operation> {
    let at = prop_oneof![8 => 0..4u64, 1 => 200_000..200_003u64, 1 => 400_000..400_003u64];
    (pick(), stream(), at, 0..3usize).prop_map(|(lease, stream, at, units)| Operation::AppendOutput {
        lease,
        stream,
        at,
        units,
    })
}

fn stream() -> impl Strategy<Value = OutputStream> {
    prop_oneof![3 => Just(OutputStream::Stdout), 1 => Just(OutputStream::Stderr)]
}

fn bytes_done() -> impl Strategy<Value = Option<ByteProgress>> {
    let total = option::of(select(vec![0, 9, u64::MAX]));
    option::of((select(vec![0, 7, u64::MAX]), total).prop_map(|(done, total)| ByteProgress { done, total }))
}

fn io() -> impl Strategy<Value = Io> {
    select(vec![Io::default(), Io { disk_read: 1, network_sent: u64::MAX, ..Io::default() }])
}

fn completion_wait() -> impl Strategy<Value = CompletionWait> {
    let delays = select(vec![Duration::ZERO, SECOND, MINUTE]);
    let retry =
        (0..4u32, delays).prop_map(|(attempts, delay)| RetryPolicy { attempts, backoff: Backoff::Constant { delay } });
    (option::of(delay()), retry, 0..4u64).prop_map(|(within, retry, random)| CompletionWait { within, retry, random })
}

fn external_completion() -> impl Strategy<Value = ExternalCompletion> {
    let result = option::of(select(vec![b"".as_slice(), b"approved"])).prop_map(|result| result.map(Into::into));
    let class = prop_oneof![
        2 => Just(FailureClass::Retryable),
        1 => Just(FailureClass::Permanent),
        1 => delay().prop_map(FailureClass::RetryAfter),
        1 => delay().prop_map(FailureClass::NotCounted),
    ];
    prop_oneof![
        2 => result.prop_map(|result| ExternalCompletion::Complete { result }),
        2 => class.prop_map(|class| ExternalCompletion::Fail { error: "declined".into(), class }),
        1 => option::of(delay()).prop_map(|within| ExternalCompletion::Extend { within }),
    ]
}

fn checkpoint() -> impl Strategy<Value = Bytes> {
    select(vec![b"checkpoint".as_slice(), b"", &[0; 33]]).prop_map(Into::into)
}

pub(super) fn after_failure() -> impl Strategy<Value = AfterFailure> {
    let retry = (delay(), any::<bool>(), any::<bool>());
    prop_oneof![
        5 => retry.prop_map(|(after, uses_attempt, hold)| AfterFailure::Retry { after, uses_attempt, hold }),
        1 => Just(AfterFailure::Dead),
        1 => Just(AfterFailure::Fail),
    ]
}

fn control() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => pick().prop_map(Operation::Cancel),
        9 => pick().prop_map(Operation::Retry),
        3 => pick().prop_map(Operation::RunNow),
        1 => pick().prop_map(Operation::Kill),
        1 => pick().prop_map(Operation::Delete),
        1 => (scope(), option::of(delay())).prop_map(|(scope, for_)| Operation::Pause { scope, for_ }),
        2 => scope().prop_map(Operation::Resume),
        2 => set_queue().prop_map(Operation::SetQueue),
        3 => set_limit().prop_map(Operation::SetLimit),
        1 => mode().prop_map(Operation::SetQueueMode),
    ]
}

fn set_queue() -> impl Strategy<Value = SetQueue> {
    let weight = option::of(select(vec![1, 1, 2, 3, 0, 1001]));
    let limit = prop_oneof![
        1 => Just(ConcurrencyLimit::Unlimited),
        3 => (0..4u32).prop_map(ConcurrencyLimit::AtMost),
    ];
    let wait = option::weighted(0.3, select(vec![Duration::ZERO, SECOND, MINUTE, MINUTE * 61]));
    (queue(), weight, option::of(limit), wait).prop_map(|(queue, weight, concurrency, affinity_wait)| SetQueue {
        queue,
        weight,
        concurrency,
        affinity_wait,
    })
}

fn set_limit() -> impl Strategy<Value = SetLimit> {
    let scope = prop_oneof![
        1 => Just(LimitScope::All),
        1 => queue().prop_map(LimitScope::Queue),
        1 => kind().prop_map(LimitScope::Kind),
        3 => group().prop_map(LimitScope::Group),
        2 => select(vec!["", "tenant-"]).prop_map(|beginning| LimitScope::Groups(beginning.to_owned())),
    ];
    let concurrency = prop_oneof![
        1 => Just(ConcurrencyLimit::Unlimited),
        2 => (0..4u32).prop_map(ConcurrencyLimit::AtMost),
    ];
    let rate = (1..4u32, select(vec![Duration::from_millis(300), SECOND, MINUTE]), 1..4u32);
    let rate = prop_oneof![
        1 => Just(RateLimit::Unlimited),
        2 => rate.prop_map(|(tasks, per, burst)| RateLimit::AtMost(Rate { tasks, per, burst })),
    ];
    let shares = (option::weighted(0.5, share()), option::weighted(0.4, share()));
    (scope, option::weighted(0.7, concurrency), option::weighted(0.5, rate), shares).prop_map(
        |(scope, concurrency, rate, (weight, minimum))| {
            let (weight, minimum) = if scope.is_of_groups() { (weight, minimum) } else { (None, None) };
            SetLimit { scope, concurrency, rate, weight, minimum }
        },
    )
}

fn share() -> impl Strategy<Value = GroupShare> {
    prop_oneof![2 => Just(GroupShare::Unset), 3 => (1..4u32).prop_map(GroupShare::Of)]
}

fn mode() -> impl Strategy<Value = QueueMode> {
    select(QueueMode::ALL.to_vec())
}

fn removal() -> impl Strategy<Value = Operation> {
    let states = subsequence(TaskState::ALL.to_vec(), 0..=9);
    let without_running =
        states.prop_map(|states| states.into_iter().filter(|state| *state != TaskState::Running).collect());
    let states = prop_oneof![5 => without_running, 1 => Just(vec![TaskState::Running])];
    let prune = (option::of(delay()), option::of(0..6u64), 0..4usize);
    prop_oneof![
        2 => (queue(), states, 0..4usize).prop_map(|(queue, states, limit)| Operation::Purge { queue, states, limit }),
        2 => queue().prop_map(Operation::DeleteQueue),
        2 => prune.prop_map(|(older_than, keep, limit)| Operation::Prune(Prune { older_than, keep, limit })),
    ]
}

fn bulk() -> impl Strategy<Value = Operation> {
    let any = TaskFilter::default;
    let filters = vec![
        any(),
        TaskFilter { kind: Some(name("copy")), ..any() },
        TaskFilter { queue: Some(name("slow")), priority_to: Some(Priority::NORMAL), ..any() },
        TaskFilter { tags: [("a", "1")].into_iter().collect(), ..any() },
        TaskFilter { tag_key_prefix: Some("a".to_owned()), ..any() },
        TaskFilter { states: vec![TaskState::Waiting, TaskState::Running, TaskState::Completed], ..any() },
        TaskFilter { key_prefix: Some("b".to_owned()), ..any() },
        TaskFilter { cancel_requested: Some(true), ..any() },
        TaskFilter { group: Some(name("tenant-1")), ..any() },
        TaskFilter { orchestration: Some(true), ..any() },
        TaskFilter { orchestration: Some(false), ..any() },
    ];
    let verb = select(vec![
        BulkVerb::Cancel,
        BulkVerb::Retry,
        BulkVerb::Delete,
        BulkVerb::RunNow,
        BulkVerb::Kill,
        BulkVerb::Pause,
        BulkVerb::Resume,
        BulkVerb::Move(name("slow")),
    ]);
    (verb, select(filters), option::weighted(0.3, pick()), 0..4usize)
        .prop_map(|(verb, filter, before, limit)| Operation::Bulk { verb, filter: Box::new(filter), before, limit })
}

pub(super) fn new_task() -> impl Strategy<Value = NewTask> {
    let what =
        (kind(), queue(), select(vec![b"".as_slice(), b"payload", &[0xff; 33]]), select(vec![32u8, 128, 128, 255]));
    let limit = || option::weighted(0.1, select(vec![Duration::ZERO, SECOND]));
    let retention = option::weighted(0.3, select(vec![Duration::ZERO, SECOND, MINUTE]));
    let limits = (limit(), limit(), option::weighted(0.1, Just(Timestamp::MAX)), retention);
    let retry =
        option::weighted(0.1, (0..3u32).prop_map(|attempts| RetryPolicy { attempts, backoff: Backoff::default() }));
    let unique = (option::weighted(0.5, unique()), tags(), option::weighted(0.4, group()));
    // These strategies are boxed, as is the strategy below. Otherwise the generated values lie on
    // the stack, which is small in a test.
    let orchestration = (proptest::bool::weighted(0.3), option::weighted(0.3, 0..3u64));
    let others =
        (depends_on(), parent(), io(), aggregate(), option::weighted(0.4, affinity_key()), orchestration).boxed();
    (what, when(), unique, option::weighted(0.3, ttl()), limits, retry, others).prop_map(
        |(
            (kind, queue, payload, priority),
            when,
            (unique, tags, group),
            ttl,
            (timeout, heartbeat_timeout, deadline, retention),
            retry,
            (depends_on, parent, io, aggregate, affinity, (orchestration, report)),
        )| {
            collectable(NewTask {
                kind,
                queue,
                payload: payload.into(),
                priority: Priority(priority),
                when,
                unique,
                ttl,
                timeout,
                heartbeat_timeout,
                deadline,
                retention,
                retry,
                group,
                scheduled_at: None,
                tags,
                depends_on,
                parent,
                io,
                aggregate,
                affinity,
                orchestration: orchestration && aggregate.is_none_or(|aggregate| aggregate.size > 1000),
                report: report.filter(|_| parent.is_some()),
            })
        },
    )
}

/// Removes from most tasks of a batch the options for which a store would reject them.
fn collectable(new: NewTask) -> NewTask {
    match new.aggregate {
        Some(Aggregate { size: 1 | 2, .. }) => {
            let ttl = new.ttl.map(|ttl| Ttl { from: TtlFrom::Submission, ..ttl });
            NewTask { when: When::Now, deadline: None, depends_on: Dependencies::default(), affinity: None, ttl, ..new }
        }
        _ => new,
    }
}

/// Generates the batching of a task: mostly small batches, sometimes an invalid size.
fn aggregate() -> impl Strategy<Value = Option<Aggregate>> {
    let (delays, graces) = (vec![SECOND, Duration::from_secs(5), MINUTE], vec![SECOND, SECOND, Duration::from_secs(5)]);
    let aggregate = (select(vec![1, 2, 2, 3, 3, 1001]), select(delays), select(graces));
    option::weighted(0.25, aggregate.prop_map(|(size, delay, grace)| Aggregate { size, delay, grace }))
}

/// Generates a parent. Its number stands for a pick, as with dependencies.
fn parent() -> impl Strategy<Value = Option<TaskId>> {
    option::weighted(0.2, (0..4i64).prop_map(TaskId))
}

/// Generates dependencies. Their numbers stand for picks, which are resolved when the submit is
/// run.
fn depends_on() -> impl Strategy<Value = Dependencies> {
    let dependency = prop_oneof![
        6 => (0..4i64).prop_map(|pick| Dependency::Task(TaskId(pick))),
        1 => (0..3usize).prop_map(Dependency::Position),
    ];
    let some = (vec(dependency, 1..3), on_failure()).prop_map(|(tasks, on_failure)| Dependencies { tasks, on_failure });
    prop_oneof![6 => Just(Dependencies::default()), 1 => some]
}

fn on_failure() -> impl Strategy<Value = OnDependencyFailure> {
    select(vec![OnDependencyFailure::Cancel, OnDependencyFailure::Fail, OnDependencyFailure::Ignore])
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        6 => Just(When::Now),
        2 => delay().prop_map(When::After),
        1 => select(vec![0, 1_704_067_205_000_000, i64::MAX]).prop_map(|at| When::At(Timestamp::from_microseconds(at))),
    ]
}

fn unique() -> impl Strategy<Value = UniqueKey> {
    let on_duplicate = select(vec![
        OnDuplicate::Skip,
        OnDuplicate::Supersede,
        OnDuplicate::Reject,
        OnDuplicate::Requeue,
        OnDuplicate::Requeue,
        OnDuplicate::TakeOver(TaskId(1)),
        OnDuplicate::TakeOver(TaskId(2)),
    ]);
    let keep_for = select(vec![Duration::ZERO, Duration::ZERO, Duration::from_secs(5), MINUTE]);
    (select(vec!["a", "b", "b", "b", "ä", ""]), on_duplicate, keep_for)
        .prop_map(|(key, on_duplicate, keep_for)| UniqueKey { key: key.to_owned(), on_duplicate, keep_for })
}

/// Generates a tag out of few keys and values.
pub(super) fn tag() -> impl Strategy<Value = (&'static str, &'static str)> {
    (select(vec!["a", "a", "ab", "b", "ä"]), select(vec!["", "1", "1", "2"]))
}

/// Generates tags: mostly valid ones, sometimes invalid ones.
fn tags() -> impl Strategy<Value = Tags> {
    let tags = prop_oneof![
        30 => vec(tag(), 0..4).prop_map(|tags| tags.into_iter().collect()),
        1 => Just([("a=b", "1")].into_iter().collect()),
    ];
    option::weighted(0.5, tags).prop_map(Option::unwrap_or_default)
}

fn ttl() -> impl Strategy<Value = Ttl> {
    let duration = select(vec![Duration::ZERO, MICROSECOND, SECOND, Duration::from_secs(5)]);
    let from = select(vec![TtlFrom::Submission, TtlFrom::FirstAttempt]);
    (duration, from).prop_map(|(duration, from)| Ttl { duration, from })
}

pub(super) fn delay() -> impl Strategy<Value = Duration> {
    select(vec![Duration::ZERO, Duration::ZERO, MICROSECOND, SECOND, Duration::from_secs(5), Duration::MAX])
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        Just(Scope::All),
        queue().prop_map(Scope::Queue),
        kind().prop_map(Scope::Kind),
        group().prop_map(Scope::Group),
    ]
}

/// Generates a pick, mostly of one of the newest things.
pub(super) fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![3 => 0..3usize, 1 => 0..64usize].prop_map(Pick)
}

fn group() -> impl Strategy<Value = Name> {
    select(vec!["tenant-1", "tenant-1", "tenant-2", "other"]).prop_map(name)
}

fn affinity_key() -> impl Strategy<Value = Name> {
    select(vec!["user-1", "user-1", "user-2"]).prop_map(name)
}

pub(super) fn kind() -> impl Strategy<Value = Name> {
    select(vec!["copy", "copy", "mail"]).prop_map(name)
}

fn queue() -> impl Strategy<Value = Name> {
    select(vec!["default", "default", "slow"]).prop_map(name)
}
