//! Errors that `?` converts into a failure.

use std::error::Error as StdError;
use std::time::Duration;

use anyhow::Context as _;
use onward::task::FailureClass;
use onward::{Failure, TaskState};

use crate::fixture::{TestStore, error, state, submit};

on_every_store! {
    errors_of_every_kind_become_retryable_failures,
    a_failure_keeps_its_class_through_other_errors,
}

type Boxed = Box<dyn StdError + Send + Sync>;

fn read() -> std::io::Result<()> {
    Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such order"))
}

fn of_anyhow() -> anyhow::Result<()> {
    read().context("reading the order")
}

fn boxed() -> Result<(), Boxed> {
    Ok(read()?)
}

/// Shows: T20
async fn errors_of_every_kind_become_retryable_failures(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("anyhow", |_| async { Ok::<(), Failure>(of_anyhow()?) });
    engine.handle("boxed", |_| async { Ok::<(), Failure>(boxed()?) });
    engine.handle("text", |_| async { Ok::<(), Failure>(Err("no such order")?) });
    engine.handle("io", |_| async { Ok::<(), Failure>(read()?) });
    for (kind, text) in [
        ("anyhow", "reading the order: no such order"),
        ("boxed", "no such order"),
        ("text", "no such order"),
        ("io", "no such order"),
    ] {
        let id = submit(&engine, kind).await;
        engine.run_until_idle().await.unwrap();
        // The failure is retryable, but no attempt is left.
        assert_eq!((state(&store, id).await, error(&store, id).await), (TaskState::Dead, text.to_owned()), "{kind}");
    }
}

fn blocked() -> Result<(), Failure> {
    Err(Failure::permanent("the card is blocked"))
}

fn charge() -> Result<(), Boxed> {
    blocked().map_err(Failure::into_error)?;
    Ok(())
}

/// Shows: T20
async fn a_failure_keeps_its_class_through_other_errors(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("boxed", |_| async { Ok::<(), Failure>(charge()?) });
    engine.handle("anyhow", |_| async {
        let charged = blocked().map_err(Failure::into_error).context("charging the card");
        Ok::<(), Failure>(charged?)
    });
    for (kind, text) in [("boxed", "the card is blocked"), ("anyhow", "charging the card: the card is blocked")] {
        let id = submit(&engine, kind).await;
        engine.run_until_idle().await.unwrap();
        assert_eq!((state(&store, id).await, error(&store, id).await), (TaskState::Failed, text.to_owned()), "{kind}");
    }
}

/// Shows: T20
#[test]
fn a_failure_that_was_an_error_is_the_same_again() {
    let later = Failure::retry_after("later", Duration::from_secs(3));
    assert_eq!(Failure::from(later.clone().into_error()), later);
    let boxed: Boxed = later.clone().into_error().into();
    assert_eq!(Failure::from(boxed), later);
    assert_eq!(Failure::from("a text").class(), FailureClass::Retryable);
}

/// Shows: T20
#[cfg(feature = "anyhow")]
#[test]
fn a_failure_goes_into_anyhow_and_back() {
    fn order() -> anyhow::Result<()> {
        blocked()?;
        Ok(())
    }
    let plain = Failure::from(order().unwrap_err());
    assert_eq!((plain.class(), plain.message()), (FailureClass::Permanent, "the card is blocked"));
    let with_context = Failure::from(order().context("the order").unwrap_err());
    assert_eq!(
        (with_context.class(), with_context.message()),
        (FailureClass::Permanent, "the order: the card is blocked")
    );
}
