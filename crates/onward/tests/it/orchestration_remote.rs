//! Orchestrations whose code runs in another process, here replaced by decisions of the test.

use std::sync::Arc;

use bytes::Bytes;
use onward::handlers::EndReport;
use onward::orchestration::{
    HistoryEvent, RemoteCode, RemoteDecisions, RemoteEnd, RemoteFuture, RemoteReply, RemoteTurn,
};
use onward::{Engine, Name, NewTask, TaskId, TaskState};
use onward_store::StoreReads;

use crate::fixture::{TestStore, state};

on_every_store! {
    a_request_to_cancel_that_remote_code_did_not_read_goes_to_its_next_generation,
    remote_code_that_only_continues_as_new_ends_when_it_is_cancelled,
}

/// Code that takes a signal in each generation, and continues as new. It ends at a request to
/// cancel that it reads.
struct TakeSignals {
    /// True if generations after the first continue without a signal.
    continues_anyway: bool,
}

impl TakeSignals {
    /// Returns the number of new events that the code reads, and its state.
    fn decide(&self, turn: &RemoteTurn) -> (usize, RemoteEnd) {
        let mut signals = turn.history.iter().filter_map(signal).collect::<Vec<_>>();
        for (index, event) in turn.arrivals.iter().enumerate() {
            signals.extend(signal(event));
            let is_polled = !matches!(event, HistoryEvent::SignalCarried { .. } | HistoryEvent::CancelCarried);
            if matches!(event, HistoryEvent::CancelRequested) {
                return (index + 1, RemoteEnd::Cancelled);
            }
            let continues = !signals.is_empty() || (self.continues_anyway && turn.generation > 0);
            if is_polled && continues {
                let signals = signals.split_off(signals.len().min(1));
                return (index + 1, RemoteEnd::ContinueAsNew { payload: Bytes::new(), signals, cancel: false });
            }
        }
        (turn.arrivals.len(), RemoteEnd::Wait)
    }
}

fn signal(event: &HistoryEvent) -> Option<(Name, Bytes)> {
    match event {
        HistoryEvent::SignalReceived { name, payload } | HistoryEvent::SignalCarried { name, payload } => {
            Some((Name::new(name).unwrap(), Bytes::copy_from_slice(payload)))
        }
        _ => None,
    }
}

impl RemoteCode for TakeSignals {
    fn run(&self, turn: RemoteTurn) -> RemoteFuture {
        let (read, end) = self.decide(&turn);
        let awaits = vec![Name::new("go").unwrap()];
        let decisions = RemoteDecisions { read, decisions: Vec::new(), awaits, end };
        Box::pin(std::future::ready(RemoteReply::Decided(Box::new(decisions))))
    }

    fn ended(&self, _: TaskId, _: u32, _: EndReport) {}
}

/// Starts the code, sends it events and then a request to cancel, and waits until nothing is left
/// to do. Returns the state and the generation.
async fn cancelled_after(store: &TestStore, code: TakeSignals, events: usize) -> (TaskState, u32) {
    let engine: Engine = store.engine().await;
    engine.orchestrate_remotely("remote", Arc::new(code));
    let task =
        engine.submit_task(NewTask { orchestration: true, ..NewTask::new("remote").unwrap() }).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    for _ in 0..events {
        engine.signal(task, "go", &()).await.unwrap();
    }
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    (state(store, task).await, store.instance(task).await.unwrap().unwrap().generation)
}

/// Shows: D8
async fn a_request_to_cancel_that_remote_code_did_not_read_goes_to_its_next_generation(store: TestStore) {
    let ended = cancelled_after(&store, TakeSignals { continues_anyway: false }, 2).await;
    assert_eq!(ended, (TaskState::Cancelled, 2));
}

/// Shows: D8
async fn remote_code_that_only_continues_as_new_ends_when_it_is_cancelled(store: TestStore) {
    let ended = cancelled_after(&store, TakeSignals { continues_anyway: true }, 1).await;
    assert_eq!(ended, (TaskState::Cancelled, 1));
}
