//! Watching events, across interruptions.

use futures_core::Stream;
use futures_util::stream;

use crate::client::Client;
use crate::client::tasks::{task_path, with_query};
use crate::error::{Error, Result};
use crate::http::{Attempts, EventMessage, Failure, MessageStream};
use crate::types::Event;

/// An endless sequence of events. After an interruption it continues behind the last one.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    path: String,
    cursor: Option<String>,
    attempts: Attempts,
    stream: Option<MessageStream>,
}

impl Client {
    /// Watches the events of all tasks, from the oldest that is kept, or behind the cursor `after`.
    /// `query` selects: `kinds=a,b`, `queue=NAME`, `ends=true`, joined by `&`; empty for all.
    #[must_use]
    pub fn watch(&self, query: &str, after: Option<&str>) -> Watch {
        Watch::new(self, with_query("/v1/events", query), after)
    }

    /// Watches the events of one task.
    #[must_use]
    pub fn watch_task(&self, task: &str, after: Option<&str>) -> Watch {
        Watch::new(self, format!("{}/events", task_path(task)), after)
    }
}

impl Watch {
    fn new(client: &Client, path: String, after: Option<&str>) -> Self {
        let attempts = Attempts::new(client.transport.retry_for);
        Self { client: client.clone(), path, cursor: after.map(str::to_owned), attempts, stream: None }
    }

    /// Returns the position behind the last event.
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Waits for the next event. The future may be dropped without losing one.
    ///
    /// # Errors
    /// Returns the errors of [`Client::send`], if the server is gone for longer than
    /// [`retry_for`](crate::ClientBuilder::retry_for).
    pub async fn next(&mut self) -> Result<Event> {
        loop {
            match self.next_event().await {
                Ok(event) => {
                    self.attempts.progressed();
                    self.cursor = Some(event.cursor.clone());
                    return Ok(event);
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Problem(problem)) if !crate::http::is_transient(problem.status) => {
                    return Err((*problem).into());
                }
                Err(Failure::Problem(problem)) => {
                    let pause = problem.retry_after;
                    self.attempts.pause((*problem).into(), pause).await?;
                }
                Err(Failure::Lost { reason, .. }) => {
                    self.stream = None;
                    let error = self.client.transport.unavailable(&reason);
                    self.attempts.pause(error, None).await?;
                }
            }
        }
    }

    async fn next_event(&mut self) -> Result<Event, Failure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = self.client.open(&self.path, self.cursor.as_deref()).await?;
                self.attempts.succeeded();
                none.insert(stream)
            }
        };
        while let Some(message) = stream.next().await? {
            if message.event == "bye" {
                break;
            }
            if let Some(event) = read(message).map_err(Failure::Final)? {
                return Ok(event);
            }
        }
        Err(Failure::Lost { reason: "the stream ended".to_owned(), sent: true })
    }

    /// Returns the events as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event>> {
        stream::try_unfold(self, |mut watch| async move { Ok(Some((watch.next().await?, watch))) })
    }
}

fn read(message: EventMessage) -> Result<Option<Event>> {
    match message {
        EventMessage { event, id: Some(cursor), .. } if event == "gap" => {
            Ok(Some(Event { cursor, change: event, ..Event::default() }))
        }
        EventMessage { data: Some(data), .. } => serde_json::from_str(&data)
            .map(Some)
            .map_err(|error| Error::unreadable(format!("an event cannot be read: {error}"))),
        _ => Ok(None),
    }
}
