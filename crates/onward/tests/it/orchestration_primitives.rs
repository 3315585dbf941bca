//! Primitives of tokio and of futures in the code of orchestrations. Those that the guide names are
//! replayed as they ran.
//!
//! Each is used so often that tokio's cooperative budget (128 operations) would run out halfway.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use onward::orchestration::{OrchestrationContext, RecordedHistory, join_all};
use onward::{Failure, TaskState};
use tokio::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};

use crate::fixture::{TestStore, error, state};
use crate::orchestrations::{Answer, Double, Work, engine, finish, start};

on_every_store! {
    a_mutex_of_tokio_is_replayed,
    a_read_write_lock_of_tokio_is_replayed,
    a_semaphore_of_tokio_is_replayed,
    a_notify_of_tokio_is_replayed,
    a_once_cell_of_tokio_is_replayed,
    a_barrier_of_tokio_is_replayed,
    an_mpsc_channel_of_tokio_is_replayed,
    a_oneshot_channel_of_tokio_is_replayed,
    a_watch_channel_of_tokio_is_replayed,
    a_broadcast_channel_of_tokio_is_replayed,
    a_join_of_tokio_is_replayed,
    a_biased_select_of_tokio_is_replayed,
    a_join_of_futures_is_replayed,
    unordered_futures_are_replayed,
    a_context_that_a_spawned_task_uses_is_a_dead_letter,
    an_activity_of_a_spawned_task_is_an_error_there,
    an_activity_within_a_step_is_an_error_there,
}

/// Nothing awaits the spawned task, so the code ends at once.
///
/// Shows: D3
async fn a_context_that_a_spawned_task_uses_is_a_dead_letter(store: TestStore) {
    let engine = engine(&store, |_, context: OrchestrationContext| async move {
        tokio::spawn(async move { context.activity(Double(1)).await });
        Ok("over".to_owned())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let said = error(&store, task).await;
    assert_eq!(state(&store, task).await, TaskState::Dead);
    assert!(said.contains("a task that it spawned") && said.contains("`join_all`"), "{said}");
}

/// Shows: D3
async fn an_activity_of_a_spawned_task_is_an_error_there(store: TestStore) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let engine = engine(&store, move |_, context: OrchestrationContext| {
        let sender = sender.clone();
        async move {
            let spawned = tokio::spawn(async move { context.activity(Double(1)).await });
            _ = sender.send(tokio::spawn(async move { spawned.await.unwrap().unwrap_err().to_string() }));
            std::future::pending::<()>().await;
            Ok("never".to_owned())
        }
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let said = receiver.recv().await.unwrap().await.unwrap();
    assert!(said.contains("outside of its code"), "{said}");
    assert_eq!(state(&store, task).await, TaskState::Dead);
}

/// Shows: D3
async fn an_activity_within_a_step_is_an_error_there(store: TestStore) {
    let engine = engine(&store, |_, context: OrchestrationContext| async move {
        let inner = context.clone();
        let step = context.step("inner", move || async move {
            inner.activity(Double(1)).await.map_err(|error| Failure::permanent(error.to_string()))
        });
        Ok(step.await?.to_string())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let said = error(&store, task).await;
    assert_eq!(state(&store, task).await, TaskState::Dead);
    assert!(said.contains("in a step"), "{said}");
}

/// More operations than the budget of one poll.
const OFTEN: u32 = 200;

/// Runs code until it waits for `go`, lets another engine take it over, and checks it against the
/// recorded history. It does so within a runtime, where the budget runs out, and outside of every
/// runtime.
async fn assert_replayed<F, A>(store: &TestStore, code: F)
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + Copy + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let code = move |work, context: OrchestrationContext| async move {
        let counted = code(work, context.clone()).await?;
        context.event::<()>("go")?.await?;
        context.activity(Double(1)).await?;
        Ok(counted)
    };
    let first = engine(store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let second = engine(store, code).await;
    second.signal(task, "go", &()).await.unwrap();
    assert_eq!(finish(&second, task).await.unwrap(), OFTEN.to_string());
    let history = second.record_history(task).await.unwrap();
    assert_checked(&second, &history).await;
}

async fn assert_checked(engine: &onward::Engine, history: &RecordedHistory) {
    let semaphore = Semaphore::new(usize::MAX >> 4);
    for _ in 0..100 {
        drop(semaphore.acquire().await.unwrap());
    }
    engine.check_history(history).unwrap();
    let (engine, history) = (engine.clone(), history.clone());
    std::thread::spawn(move || engine.check_history(&history).unwrap()).join().unwrap();
}

/// Shows: D1, D5
async fn a_mutex_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let counted = Arc::new(Mutex::new(0_u32));
        let one = |_| async {
            let mut counted = counted.lock().await;
            // The others wait for the lock, and get it in their order.
            *counted += context.activity(Double(1)).await? / 2;
            Ok::<_, Failure>(())
        };
        join_all((0..OFTEN).map(one)).await.into_iter().collect::<Result<(), _>>()?;
        let counted = *counted.lock().await;
        Ok(counted.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_read_write_lock_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let counted = RwLock::new(0_u32);
        for _ in 0..OFTEN {
            *counted.write().await += 1;
            if *counted.read().await % 50 == 0 {
                context.activity(Double(1)).await?;
            }
        }
        Ok(counted.into_inner().to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_semaphore_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let three = Semaphore::new(3);
        let one = |_| async {
            let _permit = three.acquire().await.map_err(|_| Failure::permanent("closed"))?;
            Ok::<_, Failure>(context.activity(Double(1)).await? / 2)
        };
        let all = join_all((0..OFTEN).map(one)).await.into_iter().collect::<Result<Vec<u32>, _>>()?;
        Ok(all.into_iter().sum::<u32>().to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_notify_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let (ready, mut counted) = (Notify::new(), 0);
        for _ in 0..OFTEN {
            ready.notify_one();
            ready.notified().await;
            counted += 1;
        }
        let waits = async {
            ready.notified().await;
            Ok(())
        };
        let notifies = async {
            context.activity(Double(1)).await?;
            ready.notify_one();
            Ok::<_, Failure>(())
        };
        tokio::try_join!(waits, notifies)?;
        Ok(counted.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_once_cell_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let doubled = OnceCell::new();
        let one = |_| async {
            let doubled = doubled.get_or_try_init(|| async { context.activity(Double(1)).await }).await?;
            Ok::<_, Failure>(doubled / 2)
        };
        let all = join_all((0..OFTEN).map(one)).await.into_iter().collect::<Result<Vec<u32>, _>>()?;
        Ok(all.into_iter().sum::<u32>().to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_barrier_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let all = Barrier::new(OFTEN as usize);
        let one = |number| {
            let (all, context) = (&all, &context);
            async move {
                if number % 50 == 0 {
                    context.activity(Double(number)).await?;
                }
                all.wait().await;
                Ok::<_, Failure>(1)
            }
        };
        let all = join_all((0..OFTEN).map(one)).await.into_iter().collect::<Result<Vec<u32>, _>>()?;
        Ok(all.into_iter().sum::<u32>().to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn an_mpsc_channel_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let (sender, mut receiver) = mpsc::channel(1000);
        for _ in 0..OFTEN {
            sender.send(1_u32).await.map_err(|_| Failure::permanent("closed"))?;
        }
        drop(sender);
        let mut counted = 0;
        while let Some(one) = receiver.recv().await {
            counted += one;
            if counted % 50 == 0 {
                context.activity(Double(counted)).await?;
            }
        }
        Ok(counted.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_oneshot_channel_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        // A thousand channels are ready in one turn.
        let mut counted = 0;
        for round in 0..5 {
            let mut receivers = Vec::new();
            for _ in 0..OFTEN {
                let (sender, receiver) = oneshot::channel();
                sender.send(u32::from(round == 0)).map_err(|_| Failure::permanent("closed"))?;
                receivers.push(receiver);
            }
            for receiver in receivers {
                counted += receiver.await.map_err(|_| Failure::permanent("closed"))?;
            }
        }
        context.activity(Double(counted)).await?;
        Ok(counted.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_watch_channel_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let (sender, mut receiver) = watch::channel(0_u32);
        for number in 1..=OFTEN {
            sender.send(number).map_err(|_| Failure::permanent("closed"))?;
            receiver.changed().await.map_err(|_| Failure::permanent("closed"))?;
            if number % 50 == 0 {
                context.activity(Double(number)).await?;
            }
        }
        let last = *receiver.borrow();
        Ok(last.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_broadcast_channel_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let (sender, mut receiver) = broadcast::channel(1000);
        for _ in 0..OFTEN {
            sender.send(1_u32).map_err(|_| Failure::permanent("closed"))?;
        }
        let mut counted = 0;
        while counted < OFTEN {
            counted += receiver.recv().await.map_err(|_| Failure::permanent("closed"))?;
            if counted % 50 == 0 {
                context.activity(Double(counted)).await?;
            }
        }
        Ok(counted.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_join_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let counted = Mutex::new(0_u32);
        let half = || async {
            for number in 0..OFTEN / 2 {
                *counted.lock().await += 1;
                if number % 20 == 0 {
                    context.activity(Double(number)).await?;
                }
            }
            Ok::<_, Failure>(())
        };
        let (one, other) = tokio::join!(half(), half());
        one.and(other)?;
        Ok(counted.into_inner().to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_biased_select_of_tokio_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let (sender, mut receiver) = mpsc::channel(1000);
        let mut counted = 0;
        for _ in 0..OFTEN {
            sender.send(1_u32).await.map_err(|_| Failure::permanent("closed"))?;
        }
        let mut late = std::pin::pin!(context.timer(Duration::from_secs(3600)));
        while counted < OFTEN {
            tokio::select! {
                biased;
                () = &mut late => break,
                one = receiver.recv() => counted += one.unwrap_or_default(),
            }
        }
        Ok(counted.to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn a_join_of_futures_is_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let half = || (0..OFTEN / 2).map(|_| context.activity(Double(1)).start());
        let one = futures_util::future::try_join_all(half()).await?;
        let other = futures_util::future::join_all(half()).await.into_iter().collect::<Result<Vec<u32>, _>>()?;
        Ok(((one.into_iter().sum::<u32>() + other.into_iter().sum::<u32>()) / 2).to_string())
    })
    .await;
}

/// Shows: D1, D5
async fn unordered_futures_are_replayed(store: TestStore) {
    assert_replayed(&store, |_, context| async move {
        let mut all: FuturesUnordered<_> = (0..OFTEN).map(|_| context.activity(Double(1)).start()).collect();
        let mut counted = 0;
        while let Some(doubled) = all.next().await {
            counted += doubled? / 2;
            if counted % 50 == 0 {
                context.activity(Double(counted)).await?;
            }
        }
        Ok(counted.to_string())
    })
    .await;
}
