//! A session on its own: inputs in, outputs out.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use onward_protocol::gateway::{AckResult, StopReason, Task};
use onward_protocol::{Code, Fence, GatewayMessage, Id, TaskFence};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{EndOutcome, EngineEnd, Input, Offer, Output, Session, Terms};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(15);

/// A session with its outputs so far, at a moment.
struct Bench {
    session: Session,
    now: Duration,
    output: Vec<Output>,
}

impl Bench {
    /// Returns a session that has had no message.
    fn fresh(may_reattach: bool) -> Self {
        let terms = Terms {
            session: "s".into(),
            lease: LEASE,
            heartbeat: LEASE / 3,
            grace: SECOND,
            max_payload: 1 << 20,
            slots: None,
            key: None,
            may_reattach,
        };
        Self { session: Session::new(terms, Duration::ZERO), now: Duration::ZERO, output: Vec::new() }
    }

    /// Returns a session that was welcomed and has credit.
    fn serving(may_reattach: bool, kinds: Value, credit: u64) -> Self {
        let mut bench = Self::fresh(may_reattach);
        bench.message(json!({ "t": "hello", "protocol": [1], "kinds": kinds }));
        bench.input(Input::Opened(Ok(())));
        bench.message(json!({ "t": "grant", "credit": credit }));
        bench.output.clear();
        bench
    }

    fn input(&mut self, input: Input) {
        self.session.handle(self.now, input, &mut self.output);
    }

    fn message(&mut self, header: Value) {
        self.input(Input::Message(vec![Bytes::from(header.to_string())]));
    }

    fn offer(&mut self, task: i64) {
        self.input(Input::Offered(Box::new(offer(task))));
    }

    fn end(&mut self, task: i64, outcome: &str) {
        self.message(json!({ "t": "end", "ends": [{ "task": task.to_string(), "fence": "1", "outcome": outcome }] }));
    }

    fn after(&mut self, time: Duration) {
        self.now += time;
        self.input(Input::Tick);
    }

    /// Returns the outputs since the last call, in short.
    fn take(&mut self) -> Vec<String> {
        self.output.drain(..).filter_map(|output| short(&output)).collect()
    }
}

fn attempt(task: i64) -> TaskFence {
    TaskFence { task: Id(task), fence: Fence(1) }
}

fn offer(task: i64) -> Offer {
    let TaskFence { task: id, fence } = attempt(task);
    let task = Task {
        task: id,
        fence,
        kind: "k".into(),
        attempt: 1,
        payload: None,
        checkpoint: None,
        queue: None,
        priority: None,
        deadline_ms: None,
        heartbeat_ms: None,
        group: None,
        parent: None,
        tags: BTreeMap::new(),
        scheduled_at: None,
        items: None,
        turn: None,
    };
    Offer { attempt: TaskFence { task: id, fence }, task, payload: Bytes::new(), checkpoint: None, events: Vec::new() }
}

/// Returns an output in short, or `None` for credit.
fn short(output: &Output) -> Option<String> {
    Some(match output {
        Output::Credit(_) => return None,
        Output::Task(offer) => format!("task {}", offer.attempt.task),
        Output::Ack(ack) => format!("ack {} {:?}", ack.attempt.task, ack.result),
        Output::End(attempt, EngineEnd::Worker(end, _)) => format!("end {} {:?}", attempt.task, end.outcome),
        Output::End(attempt, EngineEnd::Crashed(_)) => format!("crash {}", attempt.task),
        Output::End(attempt, EngineEnd::Released) => format!("release {}", attempt.task),
        Output::EndForeign { attempt, .. } => format!("foreign {}", attempt.task),
        Output::CheckResumed { attempts, .. } => format!("check {}", attempts.len()),
        Output::Send(GatewayMessage::Error(error), _) => format!("error {:?}", error.code),
        Output::Send(GatewayMessage::Stop(stop), _) => format!("stop {} {:?}", stop.attempt.task, stop.why),
        Output::Send(GatewayMessage::Welcome(welcome), _) => format!("welcome {}", welcome.session),
        Output::Send(GatewayMessage::Alive(alive), _) => format!("alive {} {:?}", alive.n, alive.lost),
        Output::Send(message, _) => format!("{message:?}"),
        Output::Skip(kinds) => format!("skip {kinds:?}"),
        Output::Stuck(attempt) => format!("stuck {}", attempt.task),
        Output::Close(_) => "close".into(),
        Output::Detach => "detach".into(),
        output => format!("{output:?}"),
    })
}

#[test]
fn an_end_is_acknowledged_when_it_is_durable_and_not_before() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 1);
    bench.offer(1);
    bench.end(1, "ok");
    assert_eq!(bench.take(), ["task 1", "end 1 Ok"]);
    bench.input(Input::Ended(attempt(1), EndOutcome::Durable));
    assert_eq!(bench.take(), ["ack 1 Ok"]);
}

#[test]
fn an_end_that_comes_again_is_acknowledged_as_it_first_was_and_ends_nothing() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 1);
    bench.offer(1);
    bench.end(1, "ok");
    bench.end(1, "ok");
    bench.input(Input::Ended(attempt(1), EndOutcome::Stale));
    bench.end(1, "ok");
    assert_eq!(bench.take(), ["task 1", "end 1 Ok", "ack 1 Stale", "ack 1 Stale"]);
}

#[test]
fn an_end_of_an_attempt_that_was_never_sent_here_is_stale() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 1);
    bench.end(7, "ok");
    assert_eq!(bench.take(), ["ack 7 Stale"]);
}

/// Returns a session that continues one of another gateway, with the attempt 7.
fn resumed() -> Bench {
    let mut bench = Bench::fresh(true);
    let resume = json!({ "session": "earlier", "tasks": [{ "task": "7", "fence": "9" }] });
    bench.message(json!({ "t": "hello", "protocol": [1], "kinds": { "k": {} }, "resume": resume }));
    bench.input(Input::Opened(Ok(())));
    bench.message(json!({ "t": "grant", "credit": 5 }));
    bench.output.clear();
    bench
}

#[test]
fn an_end_of_a_resumed_attempt_is_checked_against_the_session_that_held_it() {
    let mut bench = resumed();
    bench.message(json!({ "t": "end", "ends": [{ "task": "7", "fence": "9", "outcome": "ok" }] }));
    assert!(matches!(&bench.output[..], [Output::EndForeign { session, .. }] if session == "earlier"));
}

#[test]
fn a_resumed_attempt_that_is_claimed_again_is_stopped_before_the_next_one() {
    let mut bench = resumed();
    bench.offer(7);
    assert_eq!(bench.take(), ["stop 7 Lost", "task 7"]);
}

#[test]
fn a_worker_that_connects_again_after_bye_gets_its_acknowledgements() {
    let mut bench = Bench::serving(true, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.end(1, "ok");
    bench.message(json!({ "t": "bye" }));
    let hello = json!({ "protocol": [1], "kinds": { "k": {} }, "resume": { "session": "s" } });
    bench.input(Input::Reattached(serde_json::from_value(hello).unwrap()));
    bench.end(1, "ok");
    bench.input(Input::Ended(attempt(1), EndOutcome::Durable));
    assert_eq!(bench.take(), ["task 1", "end 1 Ok", "AcceptPayloads", "welcome s", "ack 1 Ok"]);
}

#[test]
fn a_worker_that_connects_again_to_a_stopping_gateway_is_drained_again() {
    let mut bench = Bench::serving(true, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.input(Input::Drain { why: "test", within: SECOND });
    bench.output.clear();
    let held = json!([{ "task": "1", "fence": "1" }]);
    let hello = json!({ "protocol": [1], "kinds": { "k": {} }, "resume": { "session": "s", "tasks": held } });
    bench.input(Input::Reattached(serde_json::from_value(hello).unwrap()));
    let taken = bench.take();
    assert!(taken.iter().any(|output| output.starts_with("Drain")), "{taken:?}");
}

#[test]
fn an_offer_beyond_the_credit_is_given_back() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 1);
    bench.offer(1);
    bench.offer(2);
    assert_eq!(bench.take(), ["task 1", "release 2"]);
}

#[test]
fn credit_that_goes_down_is_an_error() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.message(json!({ "t": "grant", "credit": 4 }));
    assert_eq!(bench.take(), ["task 1", "error Unexpected", "crash 1", "close"]);
}

#[test]
fn a_kind_at_its_limit_is_skipped_until_an_attempt_has_ended() {
    let mut bench = Bench::serving(false, json!({ "k": { "limit": 1 } }), 5);
    bench.offer(1);
    bench.offer(2);
    bench.end(1, "ok");
    bench.input(Input::Ended(attempt(1), EndOutcome::Durable));
    assert_eq!(bench.take(), ["task 1", "skip [\"k\"]", "release 2", "end 1 Ok", "ack 1 Ok", "skip []"]);
}

#[test]
fn a_kind_that_the_worker_does_not_know_is_skipped_for_ten_seconds() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.message(
        json!({ "t": "end", "ends": [{ "task": "1", "fence": "1", "outcome": "release", "why": "unknown_kind" }] }),
    );
    assert_eq!(bench.take(), ["task 1", "end 1 Release", "skip [\"k\"]"]);
    bench.after(SECOND * 10);
    assert_eq!(bench.take(), ["skip []"]);
}

#[test]
fn a_worker_that_is_silent_for_its_lease_loses_everything() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.after(LEASE - SECOND);
    bench.message(json!({ "t": "beat", "n": 1 }));
    bench.after(LEASE - SECOND);
    assert_eq!(bench.take(), ["task 1", "alive 1 []"]);
    bench.after(SECOND);
    assert_eq!(bench.take(), ["error Timeout", "crash 1", "close"]);
}

#[test]
fn a_connection_without_hello_ends_after_ten_seconds() {
    let mut bench = Bench::fresh(false);
    bench.after(SECOND * 10);
    assert_eq!(bench.take(), ["error Timeout", "close"]);
}

#[test]
fn a_child_whose_connection_ends_has_crashed() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.offer(2);
    bench.end(2, "ok");
    bench.input(Input::Disconnected("closed".into()));
    assert_eq!(bench.take(), ["task 1", "task 2", "end 2 Ok", "crash 1", "close"]);
}

#[test]
fn a_worker_that_connects_again_keeps_its_tasks_and_its_ends_are_acknowledged() {
    let mut bench = Bench::serving(true, json!({ "k": {} }), 5);
    (1..=3).for_each(|task| bench.offer(task));
    bench.end(2, "ok");
    bench.input(Input::Disconnected("closed".into()));
    bench.input(Input::Ended(attempt(2), EndOutcome::Durable));
    // The third task was on its way when the connection broke.
    let held = json!([{ "task": "1", "fence": "1" }, { "task": "2", "fence": "1" }, { "task": "9", "fence": "1" }]);
    let hello = json!({ "protocol": [1], "kinds": { "k": {} }, "resume": { "session": "s", "tasks": held } });
    bench.input(Input::Reattached(serde_json::from_value(hello).unwrap()));
    bench.end(2, "ok");
    let expected = [
        "task 1",
        "task 2",
        "task 3",
        "end 2 Ok",
        "detach",
        "AcceptPayloads",
        "welcome s",
        "stop 9 Lost",
        "release 3",
        "ack 2 Ok",
    ];
    assert_eq!(bench.take(), expected);
}

#[test]
fn a_worker_that_does_not_connect_again_within_the_lease_has_crashed() {
    let mut bench = Bench::serving(true, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.input(Input::Disconnected("closed".into()));
    bench.offer(2);
    bench.after(LEASE);
    assert_eq!(bench.take(), ["task 1", "detach", "release 2", "crash 1", "close"]);
}

#[test]
fn a_stop_that_is_not_followed_is_reported_once() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.input(Input::Stopping(attempt(1), StopReason::Cancelled));
    bench.after(SECOND);
    bench.after(SECOND);
    assert_eq!(bench.take(), ["task 1", "stop 1 Cancelled", "stuck 1"]);
}

#[test]
fn an_attempt_that_the_engine_ended_itself_is_lost_to_the_worker() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.input(Input::Stopping(attempt(1), StopReason::Timeout));
    bench.input(Input::Ended(attempt(1), EndOutcome::Durable));
    bench.end(1, "fail");
    assert_eq!(bench.take(), ["task 1", "stop 1 Timeout", "stop 1 Lost", "ack 1 Stale"]);
}

#[test]
fn a_refused_end_leaves_the_attempt_with_the_worker() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.end(1, "ok");
    bench.input(Input::Refused(attempt(1), "too large".into()));
    bench.end(1, "fail");
    assert_eq!(bench.take(), ["task 1", "end 1 Ok", "ack 1 Refused", "end 1 Fail"]);
}

#[test]
fn an_end_waits_for_the_checkpoints_that_were_sent_before_it() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    let beat = json!({ "t": "beat", "n": 7, "payloads": 1, "tasks": [{ "task": "1", "fence": "1", "checkpoint": 0 }] });
    bench.input(Input::Message(vec![Bytes::from(beat.to_string()), Bytes::from_static(b"half")]));
    bench.end(1, "fail");
    bench.output.retain(|output| !matches!(output, Output::Checkpoint { .. } | Output::Beat(..)));
    assert_eq!(bench.take(), ["task 1"]);
    bench.input(Input::Checkpoint { n: 7, attempt: attempt(1), refused: None });
    assert_eq!(bench.take(), ["end 1 Fail", "alive 7 []"]);
}

#[test]
fn a_refused_end_is_not_remembered() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.end(1, "ok");
    bench.input(Input::Ended(attempt(1), EndOutcome::Refused("too large".into())));
    bench.end(1, "fail");
    assert_eq!(bench.take(), ["task 1", "end 1 Ok", "ack 1 Refused", "ack 1 Stale"]);
}

#[test]
fn bye_waits_for_the_ends_that_came_before_and_gives_the_rest_back() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.offer(2);
    bench.end(1, "ok");
    bench.message(json!({ "t": "bye" }));
    bench.input(Input::Ended(attempt(1), EndOutcome::Durable));
    assert_eq!(bench.take(), ["task 1", "task 2", "end 1 Ok", "release 2", "ack 1 Ok"]);
    bench.input(Input::Ended(attempt(2), EndOutcome::Durable));
    assert_eq!(bench.take(), ["ack 2 Ok", "close"]);
}

#[test]
fn a_stopping_gateway_takes_the_tasks_back_when_its_time_is_over() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 5);
    bench.offer(1);
    bench.input(Input::Drain { why: "stop", within: SECOND });
    bench.offer(2);
    bench.output.retain(|output| !matches!(output, Output::Send(..)));
    bench.after(SECOND);
    assert_eq!(bench.take(), ["task 1", "release 2", "release 1", "close"]);
}

#[test]
fn the_end_of_an_attempt_of_another_gateway_is_tried_and_acknowledged() {
    let mut bench = resumed();
    bench.end(7, "ok");
    bench.input(Input::ForeignEnded(attempt(7), EndOutcome::Durable));
    assert_eq!(bench.take(), ["foreign 7", "ack 7 Ok"]);
}

#[test]
fn a_worker_needs_the_key_and_a_common_version() {
    let hello =
        |key: &str, version: u32| json!({ "t": "hello", "protocol": [version], "kinds": { "k": {} }, "key": key });
    for (key, version, code) in
        [("wrong", 1, Code::Unauthorised), ("", 1, Code::Unauthorised), ("right", 2, Code::Protocol)]
    {
        let mut bench = Bench::fresh(false);
        bench.session.terms.key = Some("right".into());
        bench.message(hello(key, version));
        assert_eq!(bench.take(), [format!("error {code:?}"), "close".into()]);
    }
}

#[test]
fn a_message_before_welcome_and_a_second_hello_are_errors() {
    let mut bench = Bench::fresh(false);
    bench.message(json!({ "t": "grant", "credit": 1 }));
    assert_eq!(bench.take(), ["error Unexpected", "close"]);
    let mut bench = Bench::serving(false, json!({ "k": {} }), 1);
    bench.message(json!({ "t": "hello", "protocol": [1], "kinds": { "k": {} } }));
    assert_eq!(bench.take(), ["error Unexpected", "close"]);
}

#[test]
fn an_unknown_type_is_an_error_that_leaves_the_session_open() {
    let mut bench = Bench::serving(false, json!({ "k": {} }), 1);
    bench.message(json!({ "t": "from_the_future" }));
    bench.offer(1);
    assert_eq!(bench.take(), ["error Unsupported", "task 1"]);
}

/// A step of a random sequence.
#[derive(Debug, Clone)]
enum Step {
    Offer(i64),
    End(i64),
    Durable(i64),
    Grant(u64),
    Stop(i64),
    Disconnect,
    Reattach,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1i64..9).prop_map(Step::Offer),
        (1i64..9).prop_map(Step::End),
        (1i64..9).prop_map(Step::Durable),
        (0u64..12).prop_map(Step::Grant),
        (1i64..9).prop_map(Step::Stop),
        Just(Step::Disconnect),
        Just(Step::Reattach),
        (0u64..6).prop_map(Step::Wait),
    ]
}

fn take_step(bench: &mut Bench, step: &Step) {
    match step {
        Step::Offer(task) => bench.offer(*task),
        Step::End(task) => bench.end(*task, "ok"),
        Step::Durable(task) => bench.input(Input::Ended(attempt(*task), EndOutcome::Durable)),
        Step::Grant(credit) => bench.message(json!({ "t": "grant", "credit": bench.session.credit.max(*credit) })),
        Step::Stop(task) => bench.input(Input::Stopping(attempt(*task), StopReason::Cancelled)),
        Step::Disconnect => bench.input(Input::Disconnected("gone".into())),
        Step::Reattach => {
            let hello = json!({ "protocol": [1], "kinds": { "k": {} }, "resume": { "session": "s" } });
            bench.input(Input::Reattached(serde_json::from_value(hello).unwrap()));
        }
        Step::Wait(seconds) => bench.after(SECOND * u32::try_from(*seconds).unwrap()),
    }
}

proptest! {
    /// The credit is never exceeded, no end is acknowledged as kept that the engine did not keep,
    /// and nothing follows the end of the session.
    #[test]
    fn any_sequence_keeps_the_rules(steps in proptest::collection::vec(step(), 0..60)) {
        let mut bench = Bench::serving(true, json!({ "k": {} }), 2);
        let (mut durable, mut is_closed) = (Vec::new(), false);
        for step in steps {
            if let Step::Durable(task) = step {
                durable.push(attempt(task));
            }
            take_step(&mut bench, &step);
            prop_assert!(bench.session.sent <= bench.session.credit);
            for output in bench.output.drain(..) {
                prop_assert!(!is_closed);
                match output {
                    Output::Ack(ack) if ack.result == AckResult::Ok => prop_assert!(durable.contains(&ack.attempt)),
                    Output::Close(_) => is_closed = true,
                    _ => {}
                }
            }
        }
    }
}
