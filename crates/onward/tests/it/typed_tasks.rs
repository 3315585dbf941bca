//! Typed tasks as bytes, for submits of several tasks.

use onward::task::{OnDuplicate, Tags};
use onward::{NewTask, Priority, Task, TaskFilter, TaskRecord};
use onward_store::StoreReads;
use serde::{Deserialize, Serialize};

use crate::fixture::{TestStore, record};

on_every_store! {
    a_typed_task_as_bytes_is_what_its_submit_keeps,
    a_described_submit_as_bytes_has_its_settings,
}

#[derive(Clone, Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl Task for Mail {
    const KIND: &'static str = "mail";
    type Output = u32;

    fn queue(&self) -> &str {
        "outgoing"
    }

    fn group(&self) -> Option<String> {
        Some("example.org".to_owned())
    }

    fn key(&self) -> Option<String> {
        Some(self.to.clone())
    }

    fn on_duplicate(&self) -> OnDuplicate {
        OnDuplicate::Supersede
    }

    fn priority(&self) -> Priority {
        Priority::HIGH
    }

    fn tags(&self) -> Tags {
        [("to", self.to.as_str())].into_iter().collect()
    }
}

fn mail(to: &str) -> Mail {
    Mail { to: to.to_owned() }
}

/// Returns the fields that the submitter sets.
fn said(task: TaskRecord) -> impl PartialEq + std::fmt::Debug {
    (task.kind, task.queue, task.group, task.priority, task.key, task.tags, task.payload)
}

/// Shows: T1, T20
async fn a_typed_task_as_bytes_is_what_its_submit_keeps(store: TestStore) {
    let engine = store.engine().await;
    let typed = engine.submit(mail("ada")).await.unwrap().id();
    let typed_record = said(record(&store, typed).await);
    let submitted = engine.submit_all(vec![mail("ada").to_new_task().unwrap()]).await.unwrap();
    // The key and the handling of duplicates come from the type.
    assert!(submitted[0].is_new(), "{submitted:?}");
    assert_eq!(said(record(&store, submitted[0].id()).await), typed_record);
    engine.register(|mail: Mail, _| async move { Ok(mail.to.len() as u32) });
    assert_eq!(engine.drain().await.unwrap().completed, 1);
}

/// Shows: T1, T20
async fn a_described_submit_as_bytes_has_its_settings(store: TestStore) {
    let engine = store.engine().await;
    let described = engine.submit_with(mail("ada")).group("slow").priority(Priority::LOW).into_new_task().unwrap();
    let expected =
        NewTask { group: Some("slow".parse().unwrap()), priority: Priority::LOW, ..mail("ada").to_new_task().unwrap() };
    assert_eq!(described, expected);
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 0);
    let wrong = engine.submit_with(mail("ada")).queue("\u{200b}").into_new_task().unwrap_err();
    assert!(wrong.is_invalid(), "{wrong}");
}
