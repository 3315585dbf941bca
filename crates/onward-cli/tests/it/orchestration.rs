//! `onward orchestration`, and the output of other commands about orchestrations.

use std::time::Duration;

use onward::orchestration::{OrchestrationContext, join_all, select};
use onward::{Engine, Failure, NewTask, Task};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::harness::{CommandResult, Sandbox, settings};
use crate::stores::on_every_store;

on_every_store! {
    orchestrations_are_listed_newest_first_without_other_tasks,
    a_listing_of_orchestrations_is_filtered_and_comes_in_pages,
    an_orchestration_is_shown_with_all_that_is_known,
    the_status_and_the_values_of_an_orchestration_are_read,
    a_history_is_a_timeline_of_what_came_and_what_the_code_did,
    a_history_is_whole_for_programs,
    a_tree_shows_activities_and_orchestrations_of_an_orchestration,
    a_signal_resumes_an_orchestration,
    a_dead_orchestration_resumes_when_its_code_is_fixed,
    a_cancelled_orchestration_receives_the_request_in_its_next_turn,
    an_orchestration_is_started_from_the_shell_once_for_each_key,
    orchestrations_are_found_by_the_tags_that_they_were_started_with,
    an_orchestration_is_listed_and_shown_by_the_tags_that_its_code_has_given_it,
    changes_of_tags_are_in_the_history,
    a_fork_is_found_by_the_tags_that_its_origin_had_there,
    a_start_waits_for_the_result_where_asked,
    a_wait_ends_at_its_timeout,
    a_task_that_is_not_an_orchestration_is_an_error_with_the_remedy,
    what_is_no_orchestration_keeps_no_other_from_what_is_done,
    a_payload_that_is_no_json_is_wrong_usage,
    a_key_instead_of_a_number_is_an_error_that_names_the_flag,
    a_payload_after_the_kind_is_an_error_that_names_the_option,
    a_parked_orchestration_shows_what_it_waits_for_and_until_when,
    a_missing_worker_for_an_orchestration_is_reported_first,
    a_task_that_is_an_orchestration_is_shown_as_one,
    a_deleted_orchestration_leaves_nothing,
    signals_unread_before_a_continue_as_new_are_in_the_history,
    pruning_removes_orchestrations_that_have_ended_with_their_histories,
    a_terminated_orchestration_ends_at_once_with_what_it_waits_for,
    an_orchestration_is_forked_and_reset_to_an_event,
    an_exported_history_is_replayed_with_new_code,
    negative_numbers_are_no_options,
    the_code_replies_to_an_update,
    an_orchestration_is_paused_and_resumed_by_number_and_by_filter,
    a_signal_is_kept_for_an_orchestration_that_has_not_started,
    an_orchestration_is_started_with_a_signal_and_awaited_until_it_has_a_status,
    a_reserved_key_starts_no_second_orchestration_after_the_end_of_the_first,
    a_program_that_has_the_code_replies_to_a_query,
    recorded_histories_are_checked_by_the_program_that_has_the_code,
    a_program_that_checks_nothing_is_an_error_with_the_remedy,
    a_store_with_parked_and_paused_orchestrations_is_sound not on postgres,
}

#[derive(Serialize, Deserialize)]
struct Charge(u32);

impl Task for Charge {
    const KIND: &'static str = "charge";
    type Output = String;
}

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    cents: u32,
}

impl Task for Order {
    const KIND: &'static str = "order";
    const ORCHESTRATION: bool = true;
    type Output = String;

    fn key(&self) -> Option<String> {
        Some(self.id.clone())
    }
}

/// Charges, then waits for a parcel for at most a week.
async fn order(order: Order, context: OrchestrationContext) -> Result<String, Failure> {
    let receipt = context.activity(Charge(order.cents)).await?;
    context.set_status(&"waiting for the parcel")?;
    context.set_value("cents", &order.cents)?;
    let packed = context.event::<String>("packed")?;
    let week = context.timer(Duration::from_secs(7 * 24 * 3600));
    let parcel = async { packed.await.unwrap_or_default() };
    select(parcel, week).await;
    Ok(receipt)
}

#[derive(Serialize, Deserialize)]
struct Review;

impl Task for Review {
    const KIND: &'static str = "review";
    const ORCHESTRATION: bool = true;
    type Output = String;
}

async fn review(_: Review, context: OrchestrationContext) -> Result<String, Failure> {
    context.event::<String>("approved")?.await
}

#[derive(Serialize, Deserialize)]
struct Trip;

impl Task for Trip {
    const KIND: &'static str = "trip";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

/// Waits for a task that no worker runs, and for another orchestration.
async fn trip(_: Trip, context: OrchestrationContext) -> Result<(), Failure> {
    let flight = context.activity_task::<Value>(NewTask::new("book-flight")?);
    let parts = [flight.start(), context.activity_task::<Value>(review_task()?).start()];
    join_all(parts).await;
    Ok(())
}

fn review_task() -> Result<NewTask, Failure> {
    let mut task = NewTask::new("review")?;
    task.orchestration = true;
    task.payload = "null".into();
    Ok(task)
}

/// An orchestration that restarts once and never reads its messages.
#[derive(Serialize, Deserialize)]
struct Loop(u32);

impl Task for Loop {
    const KIND: &'static str = "loop";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

async fn turn_over(Loop(round): Loop, context: OrchestrationContext) -> Result<(), Failure> {
    context.timer(Duration::ZERO).await;
    if round == 0 { Err(context.continue_as_new(&Loop(1))) } else { Ok(()) }
}

#[derive(Serialize, Deserialize)]
struct Counter;

impl Task for Counter {
    const KIND: &'static str = "counter";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

/// Replies to each request to add a number with the number plus one.
async fn counter(_: Counter, context: OrchestrationContext) -> Result<(), Failure> {
    let updates = context.updates::<i64>("add")?;
    loop {
        let update = updates.next().await;
        let sum = update.payload() + 1;
        update.accept(&sum)?;
    }
}

/// An orchestration that goes through stages and records each in its tags.
#[derive(Serialize, Deserialize)]
struct Parcel;

impl Task for Parcel {
    const KIND: &'static str = "parcel";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

async fn parcel(_: Parcel, context: OrchestrationContext) -> Result<(), Failure> {
    context.set_tag("stage", "packing")?;
    context.event::<()>("packed")?.await?;
    context.set_tag("stage", "sent")?;
    context.remove_tag("by")?;
    context.event::<()>("delivered")?.await?;
    context.set_tag("stage", "delivered")?;
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Transfer;

impl Task for Transfer {
    const KIND: &'static str = "transfer";
    const ORCHESTRATION: bool = true;
    type Output = u32;
}

async fn engine(sandbox: &Sandbox, is_mended: bool) -> Engine {
    let engine = Engine::open(sandbox.store()).await.unwrap();
    engine.register(|charge: Charge, _| async move { Ok(format!("paid {}", charge.0)) });
    engine.orchestrate(order).orchestrate(review).orchestrate(trip).orchestrate(turn_over).orchestrate(counter);
    engine.orchestrate(parcel);
    engine.orchestrate(move |_: Transfer, context: OrchestrationContext| async move {
        let cents = context.step("rate", || async { Ok(17_u32) }).await?;
        assert!(is_mended, "no rate for today");
        Ok(cents)
    });
    engine
}

/// Runs an engine until nothing is due.
fn work(sandbox: &Sandbox, is_mended: bool) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = engine(sandbox, is_mended).await;
        engine.run_until_idle().await.unwrap();
    });
}

/// Creates a store with eight tasks. An order (1) has charged (2) and waits for a parcel. A review
/// (3) waits for a signal. A transfer (4) is dead. A trip (5) waits for a flight (6) and a review
/// (7). The last (8) is a plain task.
pub(crate) fn with_orchestrations(sandbox: Sandbox) -> Sandbox {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = engine(&sandbox, false).await;
        engine.submit(Order { id: "A-17".into(), cents: 1999 }).await.unwrap();
        engine.run_until_idle().await.unwrap();
        engine.submit(Review).await.unwrap();
        engine.run_until_idle().await.unwrap();
        engine.submit(Transfer).await.unwrap();
        engine.run_until_idle().await.unwrap();
        engine.submit(Trip).await.unwrap();
        engine.run_until_idle().await.unwrap();
        engine.submit_task(NewTask::new("mail").unwrap()).await.unwrap();
    });
    sandbox
}

fn numbers(listed: &[Value]) -> Vec<i64> {
    listed.iter().map(|task| task["id"].as_i64().unwrap()).collect()
}

/// Shows: D10
fn orchestrations_are_listed_newest_first_without_other_tasks(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let ran = sandbox.onward(&["orchestration", "list"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = ran.stdout.lines().map(words).collect();
    assert_eq!(lines[0], ["NUMBER", "KIND", "KEY", "STATE", "EVENTS", "MESSAGES", "AGE", "STATUS"]);
    assert_eq!(lines[5][..6], ["1", "order", "A-17", "scheduled", "5", "0"], "{}", ran.stdout);
    assert_eq!(lines[5][7..], ["\"waiting", "for", "the", "parcel\""]);
    assert_eq!(numbers(&sandbox.json(&["orchestration", "list"])), [7, 5, 4, 3, 1]);
}

/// Shows: D10
fn a_listing_of_orchestrations_is_filtered_and_comes_in_pages(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let listed = |flags: &[&str]| numbers(&sandbox.json(&[&["orchestration", "list"], flags].concat()));
    assert_eq!(listed(&["--kind", "review"]), [7, 3]);
    assert_eq!(listed(&["--kind", "mail"]), [0; 0]);
    assert_eq!(listed(&["--state", "dead"]), [4]);
    assert_eq!(listed(&["--key", "A-17"]), [1]);
    assert_eq!(listed(&["--limit", "2"]), [7, 5]);
    assert_eq!(listed(&["--limit", "2", "--before", "5"]), [4, 3]);
    assert_eq!(sandbox.onward(&["orchestration", "list", "--limit", "2"]).stderr, "there are more: --before 5\n");
    assert_eq!(sandbox.onward(&["orchestration", "list", "--limit", "5"]).stderr, "");
}

/// Shows: D10, D6
fn an_orchestration_is_shown_with_all_that_is_known(sandbox: Sandbox) {
    let ran = with_orchestrations(sandbox).onward(&["orchestration", "show", "1"]);
    let mut settings = settings();
    settings.add_filter(r"\d+ B\b", "[size]");
    settings.bind(|| {
        insta::assert_snapshot!(ran.stdout, @r#"
        task         1
        kind         order
        queue        default
        state        scheduled
        priority     128
        attempts     0
        key          A-17
        submitted    [time]
        due          [time]
        started      [time]
        payload      {"id":"A-17","cents":1999}
        history      5 events, [size]
        messages     0 wait, of 1 received
        status       "waiting for the parcel"
        value        cents=1999
        waits for    its next timer, at [time]
        waits for    the event `packed`; `onward orchestration signal 1 packed` sends one
        "#);
    });
}

/// Shows: D6
fn the_status_and_the_values_of_an_orchestration_are_read(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let ran = sandbox.onward(&["orchestration", "status", "--key", "A-17"]);
    assert_eq!(ran.stdout, "\"waiting for the parcel\"\ncents=1999\n");
    let expected =
        json!({ "id": 1, "state": "scheduled", "status": "waiting for the parcel", "values": { "cents": 1999 } });
    assert_eq!(sandbox.json(&["orchestration", "status", "1"]), [expected]);
}

/// Shows: D10
fn a_history_is_a_timeline_of_what_came_and_what_the_code_did(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "signal", "1", "packed", "\"parcel 4\""]);
    work(&sandbox, false);
    let ran = sandbox.onward(&["orchestration", "history", "1"]);
    let mut settings = settings();
    settings.add_filter(r" *\+\[duration\]", " +[duration]");
    settings.bind(|| {
        insta::assert_snapshot!(ran.stdout, @r#"
          0 +[duration]  started at [time]
          1                 submits charge (task 2)
          3 +[duration]  charge (task 2) completed: "paid 1999"
          4                 waits until [time]
          6 +[duration]  signal `packed`: "parcel 4"
          7                 no longer waits for [time]
        end +[duration]  completed: "paid 1999"
        "#);
    });
}

/// Shows: D10
fn a_history_is_whole_for_programs(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let long = "x".repeat(1000);
    sandbox.onward(&[
        "orchestration",
        "signal",
        "--kind",
        "order",
        "--key",
        "A-17",
        "packed",
        &json!(long).to_string(),
    ]);
    work(&sandbox, false);
    let events = sandbox.json(&["orchestration", "history", "--key", "A-17"]);
    let what: Vec<_> = events.iter().map(|event| event["what"].as_str().unwrap()).collect();
    let expected =
        ["started", "task_submitted", "turn_began", "task_ended", "timer_started", "turn_began", "signal_received"];
    assert_eq!(what[..7], expected);
    assert_eq!(events[6]["payload"], json!(long).to_string());
    assert_eq!((&events[1]["task"], &events[3]["task"]), (&json!(2), &json!(2)));
    assert_eq!(events[3]["result"], "\"paid 1999\"");
}

/// Shows: D10
fn a_tree_shows_activities_and_orchestrations_of_an_orchestration(sandbox: Sandbox) {
    insta::assert_snapshot!(with_orchestrations(sandbox).onward(&["orchestration", "tree", "5"]).stdout, @r"
    5 trip blocked (orchestration)
      6 book-flight waiting
      7 review blocked (orchestration)
    ");
}

/// Shows: D3
fn a_signal_resumes_an_orchestration(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let sent = sandbox.onward_with(&["orchestration", "signal", "3", "approved", "-"], "\"by ada\"");
    assert_eq!(sent.stdout, "`approved` was sent to orchestration 3\n");
    assert_eq!(sandbox.json(&["orchestration", "show", "3"])[0]["instance"]["waiting"], 1);
    work(&sandbox, false);
    assert_eq!(sandbox.json(&["orchestration", "wait", "3"])[0]["result"], "\"by ada\"");
}

/// Shows: D9
fn a_dead_orchestration_resumes_when_its_code_is_fixed(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let shown = sandbox.onward(&["orchestration", "show", "4"]).stdout;
    assert!(shown.contains("state        dead") && shown.contains("no rate for today"), "{shown}");
    assert_eq!(sandbox.onward(&["orchestration", "wait", "4"]).code, Some(1));
    assert_eq!(
        sandbox.onward(&["orchestration", "retry", "4"]).stdout,
        "orchestration 4 resumes where its history ends\n"
    );
    work(&sandbox, true);
    let waited = sandbox.onward(&["orchestration", "wait", "4"]);
    assert_eq!((waited.code, waited.stdout.as_str()), (Some(0), "task 4 completed\n"));
}

/// Shows: D8
fn a_cancelled_orchestration_receives_the_request_in_its_next_turn(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let asked = sandbox.onward(&["orchestration", "cancel", "5"]);
    assert_eq!(asked.stdout, "orchestration 5 is asked to stop; its next turn receives the request\n");
    work(&sandbox, false);
    let states: Vec<_> =
        sandbox.json(&["orchestration", "tree", "5"]).iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["cancelled"; 3]);
}

/// Shows: D1
fn an_orchestration_is_started_from_the_shell_once_for_each_key(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let start = ["orchestration", "start", "order", "--key", "B-2", "--payload", r#"{"id":"B-2","cents":5}"#];
    assert_eq!(sandbox.onward(&start).stdout, "orchestration 9 started\n");
    let remedy = "give another --key, or --on-duplicate to replace it or to follow it";
    let held = "orchestration 9 has the key `B-2`";
    let again = sandbox.onward(&start).stdout;
    assert_eq!(again, format!("{held} already, and no other was started; {remedy}\n"));
    let rejected = sandbox.onward(&[&start[..], &["--on-duplicate", "reject"]].concat());
    assert_eq!((rejected.code, rejected.stdout), (Some(1), format!("rejected: {held}; {remedy}\n")));
    work(&sandbox, false);
    assert_eq!(sandbox.json(&["orchestration", "status", "9"])[0]["values"]["cents"], 5);
}

/// Shows: D10
fn orchestrations_are_found_by_the_tags_that_they_were_started_with(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let start = ["orchestration", "start", "review", "--tag", "city=Pisa", "--tag", "customer=7"];
    sandbox.onward(&start);
    let listed = |tags: &[&str]| numbers(&sandbox.json(&[&["orchestration", "list"], tags].concat()));
    assert_eq!(listed(&["--tag", "city=Pisa"]), [9]);
    assert_eq!(listed(&["--tag", "city=Pisa", "--tag", "customer=8"]), [0; 0]);
    assert_eq!(listed(&["--tag-key-prefix", "cust"]), [9]);
}

/// Shows: D10
fn an_orchestration_is_listed_and_shown_by_the_tags_that_its_code_has_given_it(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "start", "parcel", "--payload", "null", "--tag", "by=ada", "--tag", "stage=new"]);
    let listed = |tag: &str| numbers(&sandbox.json(&["orchestration", "list", "--tag", tag]));
    let sent = |event: &str| {
        sandbox.onward(&["orchestration", "signal", "9", event, "null"]);
        work(&sandbox, false);
    };
    assert_eq!(listed("stage=new"), [9]);
    work(&sandbox, false);
    assert_eq!((listed("stage=new"), listed("stage=packing"), listed("by=ada")), (vec![], vec![9], vec![9]));
    sent("packed");
    assert_eq!((listed("stage=packing"), listed("stage=sent"), listed("by=ada")), (vec![], vec![9], vec![]));
    assert_eq!(numbers(&sandbox.json(&["task", "list", "--tag", "stage=sent"])), [9]);
    let shown = sandbox.onward(&["orchestration", "show", "9"]).stdout;
    assert!(shown.contains("tag          stage=sent\n") && !shown.contains("by=ada"), "{shown}");
    sent("delivered");
    assert_eq!(
        numbers(&sandbox.json(&["orchestration", "list", "--tag", "stage=delivered", "--state", "completed"])),
        [9]
    );
    sandbox.onward(&["store", "prune", "--keep", "0"]);
    assert_eq!(listed("stage=delivered"), [0; 0]);
}

/// Shows: D10
fn changes_of_tags_are_in_the_history(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "start", "parcel", "--payload", "null", "--tag", "by=ada"]);
    work(&sandbox, false);
    sandbox.onward(&["orchestration", "signal", "9", "packed", "null"]);
    work(&sandbox, false);
    let ran = sandbox.onward(&["orchestration", "history", "9"]);
    let mut settings = settings();
    settings.add_filter(r" *\+\[duration\]", " +[duration]");
    settings.bind(|| {
        insta::assert_snapshot!(ran.stdout, @r#"
          0 +[duration]  started at [time]
          1                 has the tag stage=packing
          3 +[duration]  signal `packed`: null
          4                 has the tag stage=sent, which was packing
          5                 has the tag by no longer, which was ada
        "#);
    });
    let events = sandbox.json(&["orchestration", "history", "9"]);
    let expected = json!({ "what": "tag_removed", "key": "by", "before": "ada", "event": 5, "at": events[5]["at"] });
    assert_eq!(events[5], expected);
}

/// Shows: D10, D8
fn a_fork_is_found_by_the_tags_that_its_origin_had_there(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "start", "parcel", "--payload", "null", "--tag", "by=ada"]);
    work(&sandbox, false);
    sandbox.onward(&["orchestration", "signal", "9", "packed", "null"]);
    work(&sandbox, false);
    sandbox.onward(&["orchestration", "fork", "9", "--events", "2"]);
    let listed = |tag: &str| numbers(&sandbox.json(&["orchestration", "list", "--tag", tag]));
    assert_eq!((listed("stage=packing"), listed("by=ada"), listed("stage=sent")), (vec![10], vec![10], vec![9]));
}

/// Shows: D1, D6
fn a_start_waits_for_the_result_where_asked(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let start = ["orchestration", "start", "review", "--key", "R", "--signal", "approved=\"by ada\"", "--wait"];
    let ran = ask(&sandbox, &start);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "\"by ada\"\n"), "{}", ran.stderr);
}

/// Shows: D3, D6
fn a_wait_ends_at_its_timeout(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    for words in [&["wait", "3"][..], &["wait", "1", "--status", "\"never\""], &["update", "3", "add", "4"]] {
        let ran = sandbox.onward(&[&["orchestration"], words, &["--timeout", "1ms"]].concat());
        assert_eq!(ran.code, Some(1), "{words:?}: {}", ran.stderr);
    }
}

/// Shows: D10
fn what_is_no_orchestration_keeps_no_other_from_what_is_done(sandbox: Sandbox) {
    for _ in 0..2 {
        assert_eq!(sandbox.onward(&["orchestration", "start", "order"]).code, Some(0));
    }
    sandbox.onward(&["submit", "--kind", "plain"]);
    for verb in ["show", "tree", "status", "pause", "resume", "cancel", "retry", "terminate", "wait", "delete"] {
        let ran = sandbox.onward(&["orchestration", verb, "999", "3", "2", "1"]);
        assert_eq!(ran.code, Some(1), "{verb}");
        let output = format!("{}{}", ran.stdout, ran.stderr);
        for part in ["999", "task 3 of the kind `plain` is not an orchestration"] {
            assert!(ran.stderr.contains(part), "{verb}: {output}");
        }
        let is_of = |task: &str| output.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == task);
        assert!(is_of("1") && is_of("2"), "{verb}: {output}");
    }
    assert!(sandbox.json(&["orchestration", "list"]).is_empty(), "they were not deleted");
}

/// Shows: D10
fn a_task_that_is_not_an_orchestration_is_an_error_with_the_remedy(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let output = |arguments: &[&str]| {
        let ran = sandbox.onward(&[&["orchestration"], arguments].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        ran.stderr
    };
    let plain = output(&["history", "8"]);
    assert_eq!(plain, "error: task 8 of the kind `mail` is not an orchestration; see `onward task show 8`\n");
    let missing = output(&["show", "--key", "Z"]);
    assert!(missing.contains("no orchestration has the key `Z`; `onward orchestration list`"), "{missing}");
    let missing = output(&["signal", "--kind", "order", "--key", "Z", "packed"]);
    assert!(missing.contains("no active orchestration of kind `order` has the key `Z`"), "{missing}");
    assert!(output(&["signal", "8", "packed"]).contains("task 8 is no orchestration"));
    assert!(output(&["status", "99"]).contains("there is no task 99"));
}

/// Shows: D10
fn a_payload_that_is_no_json_is_wrong_usage(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    for arguments in [["signal", "3", "approved", "by ada"], ["start", "order", "--payload", "A-17"]] {
        let ran = sandbox.onward(&[&["orchestration"], &arguments[..]].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("is not JSON"), "{}", ran.stderr);
    }
}

/// Shows: D10
fn a_key_instead_of_a_number_is_an_error_that_names_the_flag(sandbox: Sandbox) {
    for verb in ["show", "history", "cancel"] {
        let ran = sandbox.onward(&["orchestration", verb, "A-17"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("--key 'A-17'"), "{}", ran.stderr);
    }
}

/// Shows: D10
fn a_payload_after_the_kind_is_an_error_that_names_the_option(sandbox: Sandbox) {
    for (typed, remedy) in [(r#"{"n":1}"#, r#"--payload '{"n":1}'"#), ("-4", "--payload '-4'"), ("it's", r"'it'\''s'")]
    {
        let ran = sandbox.onward(&["orchestration", "start", "order", typed]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(remedy), "{}", ran.stderr);
    }
    assert_eq!(sandbox.onward(&["stats"]).code, Some(3), "a store was made");
}

/// Shows: D10, B6
fn a_parked_orchestration_shows_what_it_waits_for_and_until_when(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let why = |task: &str| sandbox.onward(&["task", "why", task]).stdout;
    settings().bind(|| {
        insta::assert_snapshot!(why("1"), @r"
        task 1 is scheduled:
        - no worker has the store open; start one
        - it waits for its next timer, at [time]
        - it waits for the event `packed`; `onward orchestration signal 1 packed` sends one
        ");
        insta::assert_snapshot!(why("3"), @r"
        task 3 is blocked:
        - no worker has the store open; start one
        - it waits for the event `approved`; `onward orchestration signal 3 approved` sends one
        ");
        insta::assert_snapshot!(why("5"), @r"
        task 5 is blocked:
        - no worker has the store open; start one
        - it waits for the end of orchestration 7 (review), which is blocked
        - it waits for the end of task 6 (book-flight), which is waiting
        ");
    });
    assert_eq!(sandbox.json(&["task", "why", "5"])[0]["waits_for"]["tasks"], json!([7, 6]));
    assert!(sandbox.json(&["task", "why", "1"])[0]["waits_for"]["timer"].is_string());
    assert_eq!(sandbox.json(&["task", "why", "1"])[0]["waits_for"]["events"], json!(["packed"]));
    assert_eq!(sandbox.json(&["task", "why", "4"])[0]["waits_for"], json!(null));
}

/// Shows: D10, B6
fn a_missing_worker_for_an_orchestration_is_reported_first(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.pipe("started");
    sandbox.pipe("go-on");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let script = "echo started > started; cat go-on";
    let worker = sandbox.start(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script], "");
    sandbox.await_writer("started");
    let output = sandbox.onward(&["task", "why", "3"]).stdout;
    let missing = output.find("- no worker has the code of the orchestration `review`; start one that registers it");
    let waits = output.find("- it waits for the event `approved`");
    assert!(missing.is_some() && missing < waits, "{output}");
    assert_eq!(sandbox.json(&["task", "why", "3"])[0]["served_by"], json!([]));
    sandbox.write("go-on", "");
    assert_eq!(worker.wait().code, Some(0));
}

/// Shows: D10
fn a_task_that_is_an_orchestration_is_shown_as_one(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    assert_eq!(sandbox.onward(&["task", "show", "1"]).stdout, sandbox.onward(&["orchestration", "show", "1"]).stdout);
    assert!(!sandbox.onward(&["task", "show", "8"]).stdout.contains("history"));
}

/// Shows: D10
fn a_deleted_orchestration_leaves_nothing(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    assert_eq!(
        sandbox.onward(&["orchestration", "delete", "3", "1"]).stdout,
        "orchestration 3 deleted\norchestration 1 deleted\n"
    );
    assert_eq!(numbers(&sandbox.json(&["orchestration", "list"])), [7, 5, 4]);
    assert!(sandbox.onward(&["orchestration", "history", "1"]).stderr.contains("there is no task 1"));
}

/// Shows: D10, D4
fn signals_unread_before_a_continue_as_new_are_in_the_history(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let start = ["orchestration", "start", "loop", "--payload", "0"];
    sandbox.onward(&start);
    sandbox.onward(&["orchestration", "signal", "9", "late", "\"see you\""]);
    work(&sandbox, false);
    let ran = sandbox.onward(&["orchestration", "history", "9"]);
    let mut settings = settings();
    settings.add_filter(r" *\+\[duration\]", " +[duration]");
    settings.bind(|| {
        insta::assert_snapshot!(ran.stdout, @r#"
          0             signal `late`, carried over: "see you"
          1 +[duration]  started at [time]
          2                 waits until [time]
          3             the timer of [time] fired
          4             ended with signals `late` unread: the last 1
        end +[duration]  completed
        "#)
    });
    let events = sandbox.json(&["orchestration", "history", "9"]);
    assert_eq!((&events[0]["what"], &events[0]["at"]), (&json!("signal_carried"), &json!(null)));
    assert_eq!(sandbox.json(&["orchestration", "show", "9"])[0]["instance"]["generation"], 1);
}

/// Shows: D10
fn pruning_removes_orchestrations_that_have_ended_with_their_histories(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "cancel", "3"]);
    work(&sandbox, false);
    assert_eq!(numbers(&sandbox.json(&["orchestration", "list"])), [7, 5, 4, 3, 1]);
    sandbox.onward(&["store", "prune", "--keep", "0"]);
    assert_eq!(numbers(&sandbox.json(&["orchestration", "list"])), [7, 5, 1]);
    assert!(sandbox.onward(&["orchestration", "history", "3"]).stderr.contains("there is no task 3"));
}

/// Shows: D8
fn a_terminated_orchestration_ends_at_once_with_what_it_waits_for(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let ended = sandbox.onward(&["orchestration", "terminate", "5", "--reason", "no flights"]);
    assert_eq!(ended.stdout, "orchestration 5 is terminated\n", "{}", ended.stderr);
    assert!(sandbox.onward(&["orchestration", "show", "5"]).stdout.contains("no flights"));
    work(&sandbox, false);
    let states: Vec<_> =
        sandbox.json(&["orchestration", "tree", "5"]).iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["cancelled"; 3]);
}

/// Shows: D8
fn an_orchestration_is_forked_and_reset_to_an_event(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let forked = sandbox.onward(&["orchestration", "fork", "1", "--events", "2"]);
    assert_eq!(
        forked.stdout, "orchestration 9 started with the first 2 events of orchestration 1\n",
        "{}",
        forked.stderr
    );
    work(&sandbox, false);
    assert!(sandbox.onward(&["orchestration", "history", "9"]).stdout.contains("with the history of orchestration 1"));
    let cut = sandbox.onward(&["orchestration", "reset", "1", "--events", "1"]);
    assert!(cut.stderr.contains("cut it behind event 2"), "{}", cut.stderr);
    assert_eq!(sandbox.json(&["orchestration", "reset", "1", "--events", "2"])[0]["replaces"], 1);
    assert_eq!(sandbox.json(&["orchestration", "list", "--key", "A-17", "--state", "waiting"]).len(), 1);
    assert_eq!(sandbox.json(&["orchestration", "show", "1"])[0]["state"], "cancelled");
}

/// Shows: D5
fn an_exported_history_is_replayed_with_new_code(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "export", "1", "--output", "order.cbor"]);
    let bytes = std::fs::read(sandbox.path("order.cbor")).unwrap();
    let recorded = onward::orchestration::RecordedHistory::from_bytes(&bytes).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let checked = runtime.block_on(async { engine(&sandbox, false).await.check_history(&recorded) });
    assert_eq!(checked, Ok(()));
}

/// Sends an update and works until it gets a reply.
pub(crate) fn ask(sandbox: &Sandbox, asked: &[&str]) -> CommandResult {
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| sandbox.onward(asked));
        while !asking.is_finished() {
            work(sandbox, false);
        }
        asking.join().unwrap()
    })
}

/// Shows: D3
fn negative_numbers_are_no_options(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let sent = sandbox.onward(&["orchestration", "signal", "3", "approved", "-4.5"]);
    assert_eq!(sent.stdout, "`approved` was sent to orchestration 3\n", "{}", sent.stderr);
    sandbox.onward(&["orchestration", "start", "counter"]);
    let replied = ask(&sandbox, &["orchestration", "update", "9", "add", "-4"]);
    assert_eq!(replied.stdout, "-3\n", "{}", replied.stderr);
    let started = sandbox.onward(&["orchestration", "start", "elsewhere", "--payload", "-7"]);
    assert_eq!(started.stdout, "orchestration 10 started\n", "{}", started.stderr);
}

/// Shows: D3
fn the_code_replies_to_an_update(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "start", "counter", "--key", "C"]);
    let replied = ask(&sandbox, &["orchestration", "update", "9", "add", "4"]);
    assert_eq!(replied.stdout, "5\n", "{}", replied.stderr);
    let replied = ask(&sandbox, &["orchestration", "update", "--key", "C", "add", "6"]);
    assert_eq!(replied.stdout, "7\n", "{}", replied.stderr);
    let missing = sandbox.onward(&["orchestration", "update", "--key", "D", "add", "6"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("`D`"), "{}", missing.stderr);
    let history = sandbox.onward(&["orchestration", "history", "9"]);
    // The first update may have come before the code began. Then the history lists it among the
    // messages that were already there.
    assert!(history.stdout.contains("update `add`: 6"), "{history:?}");
    assert_eq!(sandbox.json(&["orchestration", "status", "9"])[0]["values"], json!({}));
}

/// Shows: D8
fn an_orchestration_is_paused_and_resumed_by_number_and_by_filter(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    assert_eq!(sandbox.onward(&["orchestration", "pause", "3"]).stdout, "orchestration 3 is paused\n");
    assert_eq!(sandbox.json(&["orchestration", "show", "3"])[0]["instance"]["hold"], "paused");
    assert!(sandbox.onward(&["orchestration", "list"]).stdout.contains("paused"));
    assert_eq!(sandbox.onward(&["orchestration", "status", "3"]).stderr, "orchestration 3 is paused\n");
    let why = sandbox.onward(&["task", "why", "3"]).stdout;
    assert!(why.contains("`onward orchestration resume 3`"), "{why}");
    sandbox.onward(&["orchestration", "signal", "3", "approved", "\"yes\""]);
    let why = sandbox.onward(&["task", "why", "3"]).stdout;
    assert!(!why.contains("it waits for the event"), "it has come: {why}");
    work(&sandbox, false);
    assert_eq!(sandbox.json(&["orchestration", "show", "3"])[0]["state"], "blocked");
    let paused = sandbox.onward(&["orchestration", "pause", "--kind", "review", "--dry-run"]);
    assert_eq!(paused.stdout, "would pause 2 tasks: 2 blocked\n", "{}", paused.stderr);
    assert_eq!(sandbox.json(&["orchestration", "resume", "--kind", "review"])[0]["resumed"], 2);
    work(&sandbox, false);
    assert_eq!(sandbox.json(&["orchestration", "show", "3"])[0]["state"], "completed");
    let refused = sandbox.onward(&["orchestration", "pause", "8"]);
    assert!(refused.stderr.contains("is not an orchestration"), "{}", refused.stderr);
}

/// Shows: D3
fn a_signal_is_kept_for_an_orchestration_that_has_not_started(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let to = ["--kind", "order", "--key", "A-18"];
    let sent = sandbox.onward(&[&["orchestration", "signal"], &to[..], &["packed", "\"4\""]].concat());
    assert!(sent.stderr.contains("A-18"), "{}", sent.stderr);
    let kept = [&["orchestration", "signal", "--keep-for", "1h"], &to[..], &["packed", "\"4\""]].concat();
    let kept = sandbox.onward(&kept);
    assert!(kept.stdout.contains("now or when it starts"), "{} {}", kept.stdout, kept.stderr);
    let shown = sandbox.json(&["orchestration", "show", "--key", "A-18"]);
    assert_eq!((&shown[0]["instance"]["hold"], &shown[0]["instance"]["waiting"]), (&json!("unstarted"), &json!(1)));
    let started = sandbox.onward(&[
        "orchestration",
        "start",
        "order",
        "--key",
        "A-18",
        "--payload",
        r#"{"id":"A-18","cents":1}"#,
    ]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    work(&sandbox, false);
    let state = sandbox.json(&["orchestration", "list", "--key", "A-18"])[0]["state"].clone();
    assert_eq!(state, "completed");
}

/// Shows: D3, D6
fn an_orchestration_is_started_with_a_signal_and_awaited_until_it_has_a_status(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let start = |cents: &str| {
        let payload = format!(r#"{{"id":"A-18","cents":{cents}}}"#);
        let words = ["orchestration", "start", "order", "--key", "A-18", "--signal", "packed=\"4\"", "--payload"];
        sandbox.onward(&[&words[..], &[payload.as_str()]].concat())
    };
    assert_eq!(start("5").stdout, "orchestration 9 started\n");
    assert!(
        start("6").stdout.contains(" already, and no other was started; the signal was sent to it; give another --key")
    );
    assert_eq!(sandbox.json(&["orchestration", "show", "9"])[0]["instance"]["waiting"], 2);
    work(&sandbox, false);
    let output = sandbox.onward(&["orchestration", "wait", "9", "--status", "\"waiting for the parcel\""]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "orchestration 9 has the status \"waiting for the parcel\"\n")
    );
    let never = sandbox.onward(&["orchestration", "wait", "9", "--status", "\"lost\""]);
    assert!(never.code == Some(1) && never.stderr.contains("ended"), "{}", never.stderr);
}

/// Shows: D1
fn a_reserved_key_starts_no_second_orchestration_after_the_end_of_the_first(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let words = ["orchestration", "start", "review", "--key", "R", "--keep-key", "1h", "--signal", "approved=\"yes\""];
    assert_eq!(sandbox.onward(&words).stdout, "orchestration 9 started\n");
    work(&sandbox, false);
    assert_eq!(sandbox.json(&["orchestration", "show", "9"])[0]["state"], "completed");
    let again = sandbox.onward(&words[..7]);
    assert!(again.stdout.starts_with("orchestration 9, which is completed, has the key `"), "{again:?}");
}

/// Shows: D3
fn a_program_that_has_the_code_replies_to_a_query(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    program(
        &sandbox,
        r#"#!/bin/sh
test -s "$5" || exit 2
test "$3" = total && { echo '{"error":"there is no query `total`"}'; exit 1; }
echo "{\"answer\":\"$1 $2 $3 $4\"}"
"#,
    );
    let query = |words: &[&str]| {
        let query = ["orchestration", "query", "--program", "./program", "--argument", "check"];
        sandbox.onward(&[&query[..], words].concat())
    };
    let replied = query(&["1", "sum", "-4"]);
    assert_eq!((replied.code, replied.stdout.as_str()), (Some(0), "\"check --query sum -4\"\n"), "{}", replied.stderr);
    assert_eq!(query(&["--key", "A-17", "sum"]).stdout, "\"check --query sum null\"\n");
    let unknown = query(&["1", "total"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("no query `total`"), "{}", unknown.stderr);
    let other = sandbox.onward(&["orchestration", "query", "--program", "/bin/echo", "1", "sum"]);
    assert!(other.code == Some(1) && other.stderr.contains("check_main"), "{}", other.stderr);
}

/// Writes a program that agrees with all histories except those of one kind.
fn checker(sandbox: &Sandbox, but: &str) {
    let script = format!(
        r#"#!/bin/sh
for file in "$@"; do
    case "$file" in
        *{but}*) echo "{{\"file\":\"$file\",\"kind\":\"{but}\",\"events\":1,\"agrees\":false,\"error\":\"it does something else\"}}" ;;
        *) echo "{{\"file\":\"$file\",\"kind\":\"other\",\"events\":1,\"agrees\":true,\"error\":null}}" ;;
    esac
done
"#
    );
    program(sandbox, &script);
}

/// Writes a script to the file `program` and makes it executable.
pub(crate) fn program(sandbox: &Sandbox, script: &str) {
    sandbox.write("program", script);
    let mut permissions = std::fs::metadata(sandbox.path("program")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(sandbox.path("program"), permissions).unwrap();
}

/// Shows: D5
fn recorded_histories_are_checked_by_the_program_that_has_the_code(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    let recorded = sandbox.json(&["orchestration", "record", "histories", "--kind", "order"]);
    assert_eq!(recorded[0]["file"], "histories/order-1.cbor");
    assert_eq!(sandbox.json(&["orchestration", "record", "histories"]).len(), 5);
    checker(&sandbox, "nothing");
    let checked = sandbox.onward(&["orchestration", "check", "--program", "program", "histories"]);
    assert_eq!((checked.code, checked.stdout.lines().count()), (Some(0), 6), "{}", checked.stderr);
    checker(&sandbox, "trip");
    let checked = sandbox.onward(&["orchestration", "check", "--program", "./program", "histories"]);
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
    assert!(checked.stdout.contains("histories/trip-5.cbor: it does something else"), "{}", checked.stdout);
    let checked = sandbox.json(&["orchestration", "check", "--program", "./program", "histories/trip-5.cbor"]);
    assert_eq!((checked.len(), &checked[0]["agrees"]), (1, &json!(false)));
}

/// Shows: D5
fn a_program_that_checks_nothing_is_an_error_with_the_remedy(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.json(&["orchestration", "record", "histories"]);
    let echo = sandbox.onward(&["orchestration", "check", "--program", "/bin/echo", "histories"]);
    assert_eq!(echo.code, Some(1));
    assert!(echo.stderr.contains("check_main"), "{}", echo.stderr);
    let silent = sandbox.onward(&["orchestration", "check", "--program", "/bin/true", "histories"]);
    assert!(silent.stderr.contains("check_main"), "{}", silent.stderr);
    let nothing = sandbox.onward(&["orchestration", "check", "--program", "/bin/true", "."]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}

/// Shows: B11
fn a_store_with_parked_and_paused_orchestrations_is_sound(sandbox: Sandbox) {
    let sandbox = with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "pause", "5"]);
    sandbox.onward(&["orchestration", "signal", "--kind", "order", "--key", "A-18", "--keep-for", "1h", "packed"]);
    let checks = sandbox.json(&["doctor"]);
    let integrity = checks.iter().find(|check| check["check"] == "integrity").unwrap();
    assert_eq!(integrity["level"], "ok", "{integrity}");
}
