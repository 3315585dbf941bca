//! Payloads that a codec stores in another form than the program uses.

use bytes::Bytes;
use onward::orchestration::OrchestrationContext;
use onward::store::PayloadCodec;
use onward::task::OutputStream;
use onward::workflow::template::TemplateFile;
use onward::{Context, Engine, Failure, NewTask, Task, TaskState};
use onward_store::{Error, Name, Result, StoreReads};
use onward_testkit::Inverted;
use serde::{Deserialize, Serialize};

use crate::fixture::{TestStore, start, state, stop};
use crate::orchestrations::{Double, Work};

on_every_store! {
    what_a_codec_made_of_payloads_is_all_that_the_store_has,
    output_is_encoded_and_its_offsets_are_those_of_the_handler,
    a_task_that_cannot_be_decoded_is_left_to_those_who_can,
    what_cannot_be_encoded_is_not_kept,
    a_template_is_kept_as_the_codec_made_it,
}

async fn engine(store: &TestStore, codec: impl PayloadCodec) -> Engine {
    let engine = store.builder().codec(codec).open().await.unwrap();
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(|work: Work, context: OrchestrationContext| async move {
        let doubled = context.activity(Double(work.0)).await?;
        let added = context.event::<u32>("add")?.await?;
        Ok((doubled + added).to_string())
    });
    engine
}

/// A codec that cannot read payloads of other codecs.
#[derive(Debug)]
struct Strange;

impl PayloadCodec for Strange {
    fn encode(&self, payload: Bytes) -> Result<Bytes> {
        Ok(payload)
    }

    fn decode(&self, _: Bytes) -> Result<Bytes> {
        Err(Error::invalid("another key"))
    }
}

/// Shows: D1
async fn what_a_codec_made_of_payloads_is_all_that_the_store_has(store: TestStore) {
    let engine = engine(&store, Inverted).await;
    let running = engine.submit(Work(21)).await.unwrap();
    engine.signal(running.id(), "add", &5).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(running.wait().await.unwrap(), "47");
    let kept = store.task(onward::TaskId(1)).await.unwrap().unwrap();
    let turned = |text: &str| Bytes::from(text.bytes().map(|octet| !octet).collect::<Vec<u8>>());
    assert_eq!((kept.payload, kept.result.into_bytes()), (Some(turned("21")), Some(turned("\"47\""))));
}

/// A codec whose results are longer than the payloads.
#[derive(Debug)]
struct Doubled;

impl PayloadCodec for Doubled {
    fn encode(&self, payload: Bytes) -> Result<Bytes> {
        Ok([&payload[..], &payload[..]].concat().into())
    }

    fn decode(&self, payload: Bytes) -> Result<Bytes> {
        Ok(payload.slice(..payload.len() / 2))
    }
}

async fn output_is_encoded_and_its_offsets_are_those_of_the_handler(store: TestStore) {
    let engine = store.builder().codec(Doubled).open().await.unwrap();
    engine.handle("write", |context: Context| async move {
        context.output(OutputStream::Stdout, "out");
        Ok::<(), Failure>(())
    });
    let task = engine.submit_task(NewTask::new("write").unwrap()).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    let kept = store.task_output(task, OutputStream::Stdout, 0, usize::MAX).await.unwrap().unwrap();
    assert_eq!((&kept.pieces[0].bytes[..], kept.end, kept.cut), (&b"outout"[..], 3, 0));
    let read = engine.store().task_output(task, OutputStream::Stdout, 0, usize::MAX).await.unwrap().unwrap();
    assert_eq!(&read.pieces[0].bytes[..], b"out");
}

/// Shows: D1
async fn a_template_is_kept_as_the_codec_made_it(store: TestStore) {
    let engine = engine(&store, Inverted).await;
    let file = TemplateFile::read("order.yaml", "steps: [echo]\n").unwrap();
    let hash = engine.put_template(&file).await.unwrap();
    let stored = engine.template("order", None).await.unwrap().unwrap();
    assert_eq!((stored.record.hash, stored.canonical.as_str()), (hash, file.canonical()));
    let kept = store.document(Name::new("onward.templates").unwrap(), hash.to_string()).await.unwrap().unwrap();
    let turned: Bytes = file.canonical().bytes().map(|octet| !octet).collect::<Vec<u8>>().into();
    assert_eq!(kept.content, Some(turned));
}

/// Shows: D1
async fn a_task_that_cannot_be_decoded_is_left_to_those_who_can(store: TestStore) {
    let right = engine(&store, Inverted).await;
    let task =
        right.submit_task(NewTask { payload: "21".into(), ..NewTask::new("double").unwrap() }).await.unwrap().id();
    let wrong = engine(&store, Strange).await;
    wrong.run_until_idle().await.unwrap();
    let record = store.task(task).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts), (TaskState::Scheduled, 0));
    store.clock.advance(onward_store::bounds::UNREAD_PAUSE);
    right.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Completed);
}

/// A codec that encodes nothing.
#[derive(Debug)]
struct Refusing;

impl PayloadCodec for Refusing {
    fn encode(&self, _: Bytes) -> Result<Bytes> {
        Err(Error::invalid("there is no key"))
    }

    fn decode(&self, kept: Bytes) -> Result<Bytes> {
        Ok(kept)
    }
}

/// Shows: D1
async fn what_cannot_be_encoded_is_not_kept(store: TestStore) {
    let engine = engine(&store, Refusing).await;
    let said = engine.submit(Double(1)).await.unwrap_err().to_string();
    assert!(said.contains("there is no key"), "{said}");
    assert_eq!(store.count(onward::TaskFilter::default()).await.unwrap(), 0);
}

#[derive(Serialize, Deserialize, Clone)]
struct Word(String);

impl Task for Word {
    const KIND: &'static str = "word";
    const ORCHESTRATION: bool = true;
    type Output = Self;
}

#[derive(Serialize, Deserialize)]
struct Ask(Word);

impl Task for Ask {
    const KIND: &'static str = "ask";
    type Output = Word;
}

/// Passes the word on through every channel of an orchestration.
async fn report_all(word: Word, context: OrchestrationContext) -> std::result::Result<Word, Failure> {
    if context.generation() == 0 {
        return Err(context.continue_as_new(&word));
    }
    context.set_status(&word)?;
    context.set_value("kept", &word)?;
    let received: Word = context.activity(Ask(word.clone())).await?;
    let kept = context.step("keep", move || async move { Ok(received) }).await?;
    let failed = context.activity_task::<()>(NewTask::new("fails")?).await.unwrap_err();
    let update = context.updates::<Word>("told")?.next().await;
    update.accept(&failed.details::<Word>())?;
    let sent: Word = context.event("sent")?.await?;
    Ok(Word(format!("{} {}", kept.0, sent.0)))
}

/// Shows: D1
#[tokio::test]
async fn of_what_an_orchestration_is_given_and_says_nothing_is_in_the_file_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::builder().sqlite(directory.path().join("onward.db")).codec(Inverted).open().await.unwrap();
    engine.register(|Ask(word): Ask, context: Context| async move {
        context.checkpoint(&word).await?;
        Ok(word)
    });
    engine.handle("fails", |_| async { Err::<(), _>(Failure::permanent("no").with_details(&Word("engaged".into()))) });
    engine.orchestrate(report_all);
    let run = start(&engine);
    let running = engine.submit(Word("secret".into())).await.unwrap();
    engine.signal(running.id(), "sent", &Word("secret".into())).await.unwrap();
    let answer: Option<Word> = engine.update(running.id(), "told", &Word("secret".into())).await.unwrap();
    assert_eq!(
        (answer.unwrap().0, running.wait().await.unwrap().0),
        ("engaged".to_owned(), "secret secret".to_owned())
    );
    stop(&engine, run).await;
    let entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"), "{}", path.display());
    }
}
