//! The work of an engine while it waits for a reply of its store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use onward::queues::QueueMode;
use onward::{Engine, Store, TaskState};
use onward_store::{Outcome, StoreDecorator, StoreFuture, StoreReads, Write};

use crate::fixture::{Gate, TestStore, start, state, stop, submit};

on_every_store! {
    an_end_is_written_while_another_ends_answer_is_awaited,
    what_a_claim_brings_after_the_stop_is_given_back,
    where_the_most_urgent_goes_first_a_claim_is_made_beside_another,
    where_queues_take_turns_a_claim_waits_for_the_one_before_it,
}

/// A store whose replies to some calls are held at a gate, after their writes have taken effect.
#[derive(Debug)]
struct LateAnswers {
    inner: Arc<dyn Store>,
    gate: Gate,
    holds: fn(&Write) -> bool,
    is_on: AtomicBool,
    claims: AtomicUsize,
}

impl StoreDecorator for LateAnswers {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.claims.fetch_add(writes.iter().filter(|write| is_claim(write)).count(), Ordering::Relaxed);
        let held = self.is_on.load(Ordering::Relaxed) && writes.iter().any(self.holds);
        let answer = self.inner.apply(writes);
        Box::pin(async move {
            let outcomes = answer.await;
            if held {
                self.gate.pass().await;
            }
            outcomes
        })
    }
}

fn is_claim(write: &Write) -> bool {
    matches!(write, Write::Claim(_))
}

fn is_end(write: &Write) -> bool {
    matches!(write, Write::Complete { .. })
}

/// An engine on a store whose replies a gate can hold. Another gate holds its handlers of the kind
/// `any`.
struct Late {
    engine: Engine,
    store: Arc<LateAnswers>,
    handlers: Gate,
}

async fn late(store: &TestStore, holds: fn(&Write) -> bool) -> Late {
    let (gate, handlers) = (Gate::new(), Gate::new());
    let inner = store.shared();
    let late = Arc::new(LateAnswers { inner, gate, holds, is_on: AtomicBool::new(false), claims: AtomicUsize::new(0) });
    let engine = store.builder().store(late.clone()).open().await.unwrap();
    engine.handle("any", handlers.handler());
    Late { engine, store: late, handlers }
}

impl Late {
    fn hold_answers(&self) {
        self.store.is_on.store(true, Ordering::Relaxed);
    }

    fn let_answers_through(&self) {
        self.store.is_on.store(false, Ordering::Relaxed);
        self.store.gate.open(1000);
    }

    fn claims(&self) -> usize {
        self.store.claims.load(Ordering::Relaxed)
    }
}

/// Shows: T21
async fn an_end_is_written_while_another_ends_answer_is_awaited(store: TestStore) {
    let late = late(&store, is_end).await;
    submit(&late.engine, "any").await;
    submit(&late.engine, "any").await;
    let run = start(&late.engine);
    late.handlers.entered(2).await;
    late.hold_answers();
    late.handlers.open(1);
    late.store.gate.entered(1).await;
    late.handlers.open(1);
    late.store.gate.entered(1).await;
    assert_eq!(store.queues().await.unwrap()[0].ended.completed, 2);
    late.let_answers_through();
    stop(&late.engine, run).await;
}

/// Shows: T21, Q3
async fn what_a_claim_brings_after_the_stop_is_given_back(store: TestStore) {
    let late = late(&store, is_claim).await;
    late.hold_answers();
    let id = submit(&late.engine, "any").await;
    let run = start(&late.engine);
    late.store.gate.entered(1).await;
    assert_eq!(state(&store, id).await, TaskState::Running);
    late.engine.stop();
    late.let_answers_through();
    run.await.unwrap();
    assert_eq!((state(&store, id).await, late.handlers.has_entered()), (TaskState::Waiting, false));
}

/// Returns the number of claims while the reply to a claim is held, another task is submitted, and
/// the end of a running task is written.
async fn claims_beside_one(store: &TestStore) -> usize {
    let late = late(store, is_claim).await;
    let running = submit(&late.engine, "any").await;
    let run = start(&late.engine);
    late.handlers.entered(1).await;
    late.hold_answers();
    let before = late.claims();
    submit(&late.engine, "any").await;
    late.store.gate.entered(1).await;
    submit(&late.engine, "any").await;
    late.handlers.open(1);
    while state(store, running).await != TaskState::Completed {
        tokio::task::yield_now().await;
    }
    let claims = late.claims() - before;
    late.let_answers_through();
    late.handlers.open(2);
    stop(&late.engine, run).await;
    claims
}

/// Shows: Q3
async fn where_the_most_urgent_goes_first_a_claim_is_made_beside_another(store: TestStore) {
    assert!(claims_beside_one(&store).await > 1);
}

/// Shows: Q2
async fn where_queues_take_turns_a_claim_waits_for_the_one_before_it(store: TestStore) {
    store.engine().await.set_queue_mode(QueueMode::Interleaved).await.unwrap();
    assert_eq!(claims_beside_one(&store).await, 1);
}
