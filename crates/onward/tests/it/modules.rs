//! Modules, and state as an argument.

use std::sync::Arc;

use onward::engine::{Module, ModuleParts};
use onward::prelude::*;
use onward::{HandlerOptions, TaskState};
use serde::{Deserialize, Serialize};

use crate::fixture::{TestStore, error, record, submit};

on_every_store! {
    each_module_has_a_state_of_its_own,
    a_clash_of_two_modules_names_both,
    a_clash_of_a_module_and_the_program_names_both,
    a_modules_middleware_runs_around_its_own_handlers_alone,
    a_typed_handler_takes_state_as_an_argument,
    a_missing_handler_state_is_an_error_of_the_run,
    state_and_middleware_reach_kinds_of_a_pattern_that_have_options_of_their_own,
}

#[derive(Serialize, Deserialize)]
struct Greet;

impl Task for Greet {
    const KIND: &'static str = "greet";
    type Output = String;
}

/// A module that serves a kind with a state of its own.
struct Says {
    name: &'static str,
    kind: &'static str,
    says: &'static str,
}

impl Module for Says {
    fn name(&self) -> &str {
        self.name
    }

    fn register(self, parts: &mut ModuleParts) {
        parts.state(self.says.to_owned());
        parts.handle(self.kind, |context| async move { Ok::<_, Failure>(context.state::<String>()?.to_string()) });
    }
}

async fn answer(engine: &Engine, kind: &str) -> String {
    let id = submit(engine, kind).await;
    engine.drain().await.unwrap();
    String::from_utf8(engine.wait(id).await.unwrap().result.into_bytes().unwrap().to_vec()).unwrap()
}

/// Shows: T20
async fn each_module_has_a_state_of_its_own(store: TestStore) {
    let engine = store.engine().await;
    engine.state("the engine's".to_owned());
    engine.mount(Says { name: "one", kind: "one", says: "ONE" });
    engine.mount(Says { name: "two", kind: "two:*", says: "TWO" });
    engine.handle("three", |context| async move { Ok::<_, Failure>(context.state::<String>()?.to_string()) });
    assert_eq!(answer(&engine, "one").await, "ONE");
    assert_eq!(answer(&engine, "two:any").await, "TWO");
    assert_eq!(answer(&engine, "three").await, "the engine's");
}

/// Shows: T20
async fn a_clash_of_two_modules_names_both(store: TestStore) {
    let engine = store.engine().await;
    engine.mount(Says { name: "pictures", kind: "image:*", says: "" });
    engine.mount(Says { name: "thumbnails", kind: "image:*", says: "" });
    let expected = "the pattern `image:*` has two handlers, one from the module `pictures` and one from the module \
                    `thumbnails`; register one";
    assert_eq!(engine.run().await.unwrap_err().to_string(), expected);
}

/// Shows: T20
async fn a_clash_of_a_module_and_the_program_names_both(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("image", |_| async { Ok::<(), Failure>(()) });
    engine.mount(Says { name: "pictures", kind: "image", says: "" });
    let expected =
        "the kind `image` has two handlers, one from the program and one from the module `pictures`; register one";
    assert_eq!(engine.run().await.unwrap_err().to_string(), expected);
}

/// A module whose middleware fails every task of the module.
struct Fails;

impl Module for Fails {
    fn name(&self) -> &str {
        "fails"
    }

    fn register(self, parts: &mut ModuleParts) {
        parts.wrap(|_, _| async { Err(Failure::permanent("the module's middleware")) });
        parts.handle("inside", |_| async { Ok::<(), Failure>(()) });
    }
}

/// Shows: T20, Q7
async fn a_modules_middleware_runs_around_its_own_handlers_alone(store: TestStore) {
    let engine = store.engine().await;
    engine.mount(Fails).handle("outside", |_| async { Ok::<(), Failure>(()) });
    let (inside, outside) = (submit(&engine, "inside").await, submit(&engine, "outside").await);
    engine.drain().await.unwrap();
    assert_eq!(error(&store, inside).await, "the module's middleware");
    assert_eq!(record(&store, outside).await.state, TaskState::Completed);
}

/// Shows: T20
async fn a_typed_handler_takes_state_as_an_argument(store: TestStore) {
    let engine = store.engine().await;
    engine.state("hello".to_owned()).state(3_usize);
    engine.register_stateful(|_: Greet, (word, times): (Arc<String>, Arc<usize>), _: Context| async move {
        Ok(word.repeat(*times))
    });
    let handle = engine.submit(Greet).await.unwrap();
    engine.drain().await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), "hellohellohello");
}

/// Shows: T20
async fn a_missing_handler_state_is_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    engine.state(3_usize);
    engine.register_stateful(|_: Greet, (_, word): (Arc<usize>, Arc<String>), _: Context| async move {
        Ok(word.to_string())
    });
    let error = engine.run().await.unwrap_err().to_string();
    assert!(error.contains("`greet`") && error.contains("`alloc::string::String`"), "{error}");
}

/// Shows: T20, Q7
async fn state_and_middleware_reach_kinds_of_a_pattern_that_have_options_of_their_own(store: TestStore) {
    let engine = store.engine().await;
    engine.mount(Says { name: "two", kind: "two:*", says: "TWO" });
    engine.options("two:any", HandlerOptions::new().wrap(|context, next| async move { next.run(context).await }));
    assert_eq!(answer(&engine, "two:any").await, "TWO");
}
