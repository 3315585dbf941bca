//! Output of running tasks.

use std::time::Duration;

use onward_store::OutputStream::{Stderr, Stdout};
use onward_store::{Lease, Outcome, OutputPiece, OutputStream, Refusal, StoreReads, TaskId, TaskOutput, Write, bounds};

use crate::test_store::{TestStore, after, task};

fn append(lease: Lease, stream: OutputStream, at: u64, text: &str) -> Write {
    Write::AppendOutput { lease, piece: OutputPiece::new(stream, at, text.as_bytes().to_vec()) }
}

async fn read(store: &TestStore, task: TaskId, stream: OutputStream, from: u64) -> Option<TaskOutput> {
    store.inner().task_output(task, stream, from, usize::MAX).await.expect("the output can be read")
}

/// Returns what is kept of a stream, as text.
async fn text(store: &TestStore, task: TaskId, stream: OutputStream) -> String {
    let output = read(store, task, stream, 0).await;
    let pieces = output.into_iter().flat_map(|output| output.pieces);
    pieces.map(|piece| String::from_utf8_lossy(&piece.bytes).into_owned()).collect()
}

pub async fn output_is_read_while_the_task_runs_and_after_its_end(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "one ")).await;
    store.done(append(lease, Stderr, 0, "oops")).await;
    store.done(append(lease, Stdout, 4, "two")).await;
    assert_eq!(text(&store, lease.task, Stdout).await, "one two");
    store.complete(lease).await;
    let streams = [text(&store, lease.task, Stdout).await, text(&store, lease.task, Stderr).await];
    assert_eq!(streams, ["one two", "oops"]);
}

pub async fn output_is_appended_in_the_call_that_ends_the_attempt(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.apply(vec![append(lease, Stdout, 0, "last words"), Write::Complete { lease, result: None }]).await;
    assert_eq!(text(&store, lease.task, Stdout).await, "last words");
}

pub async fn a_reader_gets_the_pieces_behind_its_offset_up_to_its_limit(store: TestStore) {
    let lease = store.running(task("any")).await;
    for (at, letter) in [(0, "aaa"), (3, "bbb"), (6, "ccc"), (9, "ddd")] {
        store.done(append(lease, Stdout, at, letter)).await;
    }
    let output = store.inner().task_output(lease.task, Stdout, 4, 4).await.expect("the output can be read");
    let output = output.expect("there is output");
    let pieces: Vec<u64> = output.pieces.iter().map(|piece| piece.at).collect();
    assert_eq!((pieces, output.end, output.cut), (vec![3, 6], 12, 0));
}

pub async fn an_offset_at_the_end_returns_how_much_there_is(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "some")).await;
    for from in [4, u64::MAX] {
        let output = read(&store, lease.task, Stdout, from).await.expect("there is output");
        assert_eq!((output.end, output.pieces.len()), (4, 0));
    }
    let other = read(&store, lease.task, Stderr, 0).await.expect("the attempt has written output");
    assert_eq!((other.end, other.cut, other.attempt), (0, 0, 1));
}

pub async fn a_task_without_output_has_none(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.complete(lease).await;
    assert_eq!(read(&store, lease.task, Stdout, 0).await, None);
    assert_eq!(read(&store, TaskId(999), Stdout, 0).await, None);
}

pub async fn output_of_a_new_attempt_replaces_that_of_the_one_before(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "first")).await;
    store.done(append(lease, Stderr, 0, "oops")).await;
    store.fail(lease, after(Duration::ZERO)).await;
    let again = store.claim_one(lease.session).await;
    assert_eq!(text(&store, lease.task, Stdout).await, "first");
    store.done(append(again, Stdout, 0, "2nd")).await;
    let output = read(&store, lease.task, Stdout, 0).await.expect("there is output");
    assert_eq!((output.attempt, output.end), (2, 3));
    assert_eq!(text(&store, lease.task, Stderr).await, "");
}

pub async fn output_without_the_lease_is_refused(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.complete(lease).await;
    assert_eq!(store.refused(append(lease, Stdout, 0, "late")).await, Refusal::LeaseLost(lease));
    assert_eq!(read(&store, lease.task, Stdout, 0).await, None);
}

pub async fn a_piece_that_was_appended_before_changes_nothing(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "abc")).await;
    store.done(append(lease, Stdout, 0, "abc")).await;
    store.done(append(lease, Stdout, 1, "xy")).await;
    assert_eq!(text(&store, lease.task, Stdout).await, "abc");
    let partly = store.invalid(append(lease, Stdout, 1, "xyz")).await;
    assert!(partly.contains("3 bytes were appended"), "{partly}");
}

pub async fn bytes_that_a_worker_has_left_out_count_as_cut(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "abc")).await;
    store.done(append(lease, Stdout, 10, "xyz")).await;
    let output = read(&store, lease.task, Stdout, 0).await.expect("there is output");
    assert_eq!((output.end, output.cut, output.pieces.len()), (13, 7, 2));
}

pub async fn the_beginning_and_the_end_of_long_output_are_kept_within_the_bound(store: TestStore) {
    let lease = store.running(task("any")).await;
    let length = bounds::OUTPUT_APPEND_BYTES as u64;
    for number in 0..24 {
        let piece = OutputPiece::new(Stdout, number * length, vec![b'a'; bounds::OUTPUT_APPEND_BYTES]);
        store.done(Write::AppendOutput { lease, piece }).await;
    }
    let output = read(&store, lease.task, Stdout, 0).await.expect("there is output");
    let kept: u64 = output.pieces.iter().map(|piece| u64::from(piece.length)).sum();
    assert_eq!((output.end, output.cut), (24 * length, 24 * length - kept));
    assert!(kept <= bounds::OUTPUT_BYTES as u64 && kept >= 2 * bounds::OUTPUT_END_BYTES as u64, "{kept}");
    let ends = (output.pieces.first().map(|piece| piece.at), output.pieces.last().map(OutputPiece::end));
    assert_eq!(ends, (Some(0), Some(24 * length)));
}

pub async fn an_empty_and_a_large_piece_of_output_are_refused(store: TestStore) {
    let lease = store.running(task("any")).await;
    let large = "a".repeat(bounds::OUTPUT_APPEND_BYTES + 1);
    for text in ["", &large] {
        let message = store.invalid(append(lease, Stdout, 0, text)).await;
        assert!(message.contains("append 1 to"), "{message}");
    }
}

pub async fn output_goes_with_its_task(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "some")).await;
    store.complete(lease).await;
    store.done(Write::Delete { task: lease.task }).await;
    assert_eq!(read(&store, lease.task, Stdout, 0).await, None);
}

/// Completes an attempt whose result is its standard output, of which some was appended before.
async fn complete_with_output(store: &TestStore, lease: Lease, result: &str) {
    let piece = OutputPiece::of_result(Stdout, u32::try_from(result.len()).expect("the result is short"));
    let result = Some(result.as_bytes().to_vec().into());
    let writes = vec![Write::AppendOutput { lease, piece }, Write::Complete { lease, result }];
    assert_eq!(store.write(Write::All(writes)).await, Outcome::All(vec![Outcome::Done, Outcome::Done]));
}

pub async fn output_that_is_the_result_is_read_from_the_result(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "one ")).await;
    store.done(append(lease, Stderr, 0, "oops")).await;
    complete_with_output(&store, lease, "one two three").await;
    let streams = [text(&store, lease.task, Stdout).await, text(&store, lease.task, Stderr).await];
    assert_eq!(streams, ["one two three", "oops"]);
    let output = read(&store, lease.task, Stdout, 4).await.expect("there is output");
    assert_eq!((output.end, output.cut, output.pieces.len()), (13, 0, 1));
    let record = store.find(lease.task).await.expect("the task exists");
    assert_eq!(record.result.as_deref(), Some(&b"one two three"[..]));
}

pub async fn output_that_is_the_result_goes_with_it(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stderr, 0, "oops")).await;
    complete_with_output(&store, lease, "result").await;
    store.done(Write::Retry { task: lease.task }).await;
    let output = read(&store, lease.task, Stdout, 0).await.expect("there was output");
    assert_eq!((output.end, output.cut, output.pieces.len()), (6, 6, 0));
    assert_eq!(text(&store, lease.task, Stderr).await, "oops");
}

pub async fn output_stands_for_a_result_only_from_its_beginning_to_its_end(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(append(lease, Stdout, 0, "some")).await;
    let whole = OutputPiece::of_result(Stdout, 5);
    for piece in [OutputPiece { at: 4, ..whole.clone() }, OutputPiece { length: 3, ..whole }] {
        let message = store.invalid(Write::AppendOutput { lease, piece }).await;
        assert!(message.contains("stand for the whole stream"), "{message}");
    }
    assert_eq!(text(&store, lease.task, Stdout).await, "some");
}

pub async fn output_is_a_hint_for_its_readers(store: TestStore) {
    let lease = store.running(task("any")).await;
    let mut changes = store.inner().changes();
    let before = changes.hint().output;
    store.done(append(lease, Stdout, 0, "some")).await;
    assert!(changes.hint().output > before);
}
