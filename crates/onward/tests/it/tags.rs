//! Tags, through the engine.

use onward::task::Tags;
use onward::{Failure, Task, TaskFilter};
use onward_store::StoreReads;
use serde::{Deserialize, Serialize};

use crate::fixture::TestStore;

on_every_store! {
    a_handler_sees_the_tags_of_its_type_and_of_its_submission,
    a_tag_out_of_bounds_is_an_error_of_the_submit,
}

#[derive(Serialize, Deserialize)]
struct Invoice {
    customer: u32,
}

impl Task for Invoice {
    const KIND: &'static str = "invoice";
    type Output = Vec<(String, String)>;

    fn tags(&self) -> Tags {
        [("customer", self.customer.to_string())].into_iter().collect()
    }
}

/// Shows: T10
async fn a_handler_sees_the_tags_of_its_type_and_of_its_submission(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|_: Invoice, context: onward::Context| async move {
        let tags = context.tags().iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok::<_, Failure>(tags.collect())
    });
    let handle = engine.submit_with(Invoice { customer: 42 }).tag("region", "eu").await.unwrap();
    engine.drain().await.unwrap();
    let owned = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(handle.wait().await.unwrap(), [owned("customer", "42"), owned("region", "eu")]);
}

/// Shows: T10
async fn a_tag_out_of_bounds_is_an_error_of_the_submit(store: TestStore) {
    let engine = store.engine().await;
    let error = engine.submit_with(Invoice { customer: 42 }).tag("", "eu").await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(engine.store().count(TaskFilter::default()).await.unwrap(), 0);
}
