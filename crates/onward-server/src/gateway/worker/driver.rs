//! Drives a session: feeds it events, and carries out its commands.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward::store::Clock;
use onward::{Context, Name};
use onward_protocol::gateway::Task;
use onward_protocol::{GatewayMessage, TaskFence, WorkerMessage, bounds as protocol_bounds};
use tokio::sync::{mpsc, oneshot};

use super::checkpoints::{self, Checkpoint};
use super::engine::{self, WorkerEngine};
use super::event::{AttemptResult, Event, Events, attempt_of};
use super::message_writer::MessageWriter;
use super::outcome;
use super::turns::RunningTurn;
use super::{foreign_attempts, replies};
use crate::gateway::bounds::INPUTS_AT_ONCE;
use crate::gateway::options::{Ended, Gateway};
use crate::gateway::session::{EndOutcome, EngineEnd, Input, Offer, Output, Session};

/// A session, its engine, and the attempts between the two.
pub(in crate::gateway) struct Driver {
    session: Session,
    gateway: Gateway,
    clock: Arc<dyn Clock>,
    events: Events,
    checkpoints: mpsc::UnboundedSender<Checkpoint>,
    engine: Option<WorkerEngine>,
    running: HashMap<TaskFence, Running>,
    output: Vec<Output>,
    /// The messages to send.
    pub(in crate::gateway) writer: MessageWriter,
    /// The reason why the session is over.
    ended: Option<Ended>,
    accepts_payloads: bool,
    is_detached: bool,
    /// True if the worker was sent an error.
    had_fault: bool,
    payload_limit: usize,
}

/// An attempt of the engine that the session has not ended.
enum Running {
    Attempt { context: Context, end: oneshot::Sender<AttemptResult> },
    Turn(RunningTurn),
}

impl Running {
    fn context(&self) -> Option<&Context> {
        match self {
            Self::Attempt { context, .. } => Some(context),
            Self::Turn(_) => None,
        }
    }
}

impl Driver {
    /// Creates the driver of a new connection, and the queue of its events.
    pub(in crate::gateway) fn new(gateway: &Gateway, may_reattach: bool) -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (events, received) = mpsc::unbounded_channel();
        let clock = gateway.store.clock();
        let session = Session::new(gateway.terms(may_reattach), clock.steady());
        let driver = Self {
            session,
            gateway: gateway.clone(),
            clock,
            checkpoints: checkpoints::start(events.clone()),
            events,
            engine: None,
            running: HashMap::new(),
            output: Vec::new(),
            writer: MessageWriter::default(),
            ended: None,
            accepts_payloads: false,
            is_detached: false,
            had_fault: false,
            payload_limit: gateway.store.info().payload_limit,
        };
        (driver, received)
    }

    /// Returns the name of the session.
    pub(in crate::gateway) fn session(&self) -> &str {
        self.session.name()
    }

    /// Returns the largest payload that the worker may send now.
    pub(in crate::gateway) fn payload_limit(&self) -> usize {
        if self.accepts_payloads { self.payload_limit } else { 0 }
    }

    /// Returns the longest time between two beats.
    pub(in crate::gateway) fn heartbeat(&self) -> Duration {
        self.session.heartbeat()
    }

    pub(in crate::gateway) fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    /// Returns true once after the connection should be closed while the session continues.
    pub(in crate::gateway) fn take_detached(&mut self) -> bool {
        std::mem::take(&mut self.is_detached)
    }

    pub(in crate::gateway) fn now(&self) -> Duration {
        self.clock.steady()
    }

    /// Returns the time of the next tick, in steady time.
    pub(in crate::gateway) fn wake_at(&self) -> Option<Duration> {
        self.session.wake_at()
    }

    /// Handles an event and those that wait behind it, up to [`INPUTS_AT_ONCE`], so that the
    /// carrier sends their messages together.
    pub(in crate::gateway) async fn events(
        &mut self,
        first: Option<Event>,
        waiting: &mut mpsc::UnboundedReceiver<Event>,
    ) {
        let mut next = first;
        let mut handled = 0;
        while let Some(event) = next.take() {
            self.event(event).await;
            handled += 1;
            if handled < INPUTS_AT_ONCE {
                next = waiting.try_recv().ok();
            }
        }
    }

    /// Begins the end of the session: it gets no new tasks, and those that run have the time
    /// `within`.
    pub(in crate::gateway) async fn drain(&mut self, within: Duration) {
        self.input(Input::Drain { why: "the gateway stops", within }).await;
    }

    /// Ends the session at once.
    pub(in crate::gateway) async fn abort(&mut self) {
        self.drain(Duration::ZERO).await;
        self.input(Input::Tick).await;
    }

    /// Handles an event of the engine.
    async fn event(&mut self, event: Event) {
        match event {
            Event::Input(input) => self.input(input).await,
            Event::Started { context, end } => {
                let attempt = attempt_of(&context);
                let offer = offer(attempt, &context);
                self.running.insert(attempt, Running::Attempt { context, end });
                self.input(Input::Offered(Box::new(offer))).await;
            }
            Event::Turn { offer, turn } => {
                self.running.insert(offer.attempt, Running::Turn(turn));
                self.input(Input::Offered(offer)).await;
            }
        }
    }

    /// Handles an input.
    pub(in crate::gateway) async fn input(&mut self, input: Input) {
        let now = self.clock.steady();
        let mut output = std::mem::take(&mut self.output);
        self.session.handle(now, input, &mut output);
        for command in output.drain(..) {
            self.carry_out(command).await;
        }
        self.output = output;
    }

    async fn carry_out(&mut self, command: Output) {
        match command {
            Output::Send(message, payloads) => {
                self.had_fault |= matches!(message, GatewayMessage::Error(_));
                self.writer.add(&message, payloads);
            }
            Output::Task(offer) => self.writer.add_task(*offer),
            Output::Ack(ack) => self.writer.add_ack(ack),
            Output::AcceptPayloads => self.accepts_payloads = true,
            Output::Open(hello) => {
                let opened = engine::start(&self.gateway, self.session.name(), &hello, &self.events).await;
                let opened = opened.map(|engine| self.engine = Some(engine));
                self.emit(Input::Opened(opened));
            }
            Output::Credit(total) => self.with_engine(|engine| engine.engine.grant(total)),
            Output::Skip(kinds) => {
                let kinds: Vec<Name> = kinds.iter().filter_map(|kind| Name::new(kind).ok()).collect();
                self.with_engine(|engine| engine.engine.skip_kinds(kinds));
            }
            Output::End(attempt, end) => self.end(attempt, end),
            Output::Beat(attempt, progress) => {
                if let Some(context) = self.running.get(&attempt).and_then(Running::context) {
                    context.heartbeat();
                    progress.iter().for_each(|progress| outcome::note_progress(context, progress));
                }
            }
            Output::Checkpoint { n, attempt, bytes } => self.checkpoint(n, attempt, bytes),
            Output::EndForeign { session, attempt, end } => self.end_foreign(session, attempt, end),
            Output::CheckResumed { session, attempts } => self.check_resumed(session, attempts),
            Output::Submit(submit, payloads) => self.submit(submit, payloads),
            Output::Ask(ask) => self.ask(ask),
            Output::Stuck(attempt) => {
                let (task, session) = (attempt.task.0, self.session.name());
                tracing::warn!(task, session, "a worker did not stop a task in its grace; its slot stays used");
            }
            Output::Detach => self.is_detached = true,
            Output::Close(why) => {
                self.ended = Some(Ended { why, was_welcome: self.engine.is_some(), had_fault: self.had_fault })
            }
        }
    }

    fn with_engine(&self, act: impl FnOnce(&WorkerEngine)) {
        if let Some(engine) = &self.engine {
            act(engine);
        }
    }

    fn emit(&self, input: Input) {
        // This driver holds the receiver, so the queue is open as long as the session is.
        let _ = self.events.send(Event::Input(input));
    }

    fn end(&mut self, attempt: TaskFence, end: EngineEnd) {
        let (running, why) = match self.running.remove(&attempt) {
            Some(Running::Attempt { context, end: sender }) => {
                match outcome::result(&context, end, self.payload_limit) {
                    // The handler may have been aborted; the engine reports the end that it wrote.
                    Ok(result) => return drop(sender.send(result)),
                    Err(error) => (Running::Attempt { context, end: sender }, error.to_string()),
                }
            }
            Some(Running::Turn(turn)) => match turn.end(end, self.payload_limit) {
                Ok(()) => return,
                Err((turn, why)) => (Running::Turn(turn), why),
            },
            None => return,
        };
        self.running.insert(attempt, running);
        self.emit(Input::Refused(attempt, why));
    }

    fn checkpoint(&self, n: u64, attempt: TaskFence, bytes: Bytes) {
        let context = self.context(attempt);
        // The keeper of checkpoints ends only after this driver.
        let _ = self.checkpoints.send(Checkpoint { n, attempt, context, bytes });
    }

    fn end_foreign(&self, session: String, attempt: TaskFence, end: EngineEnd) {
        let (events, engine) = (self.events.clone(), self.engine.as_ref().map(|engine| engine.engine.clone()));
        tokio::spawn(async move {
            let outcome = match (engine, end) {
                (Some(engine), EngineEnd::Worker(end, payloads)) => {
                    foreign_attempts::end(&engine, &session, &end, &payloads).await
                }
                _ => EndOutcome::Stale,
            };
            let _ = events.send(Event::Input(Input::ForeignEnded(attempt, outcome)));
        });
    }

    fn check_resumed(&self, session: String, attempts: Vec<TaskFence>) {
        let (events, store) = (self.events.clone(), Arc::clone(&self.gateway.store));
        tokio::spawn(async move {
            let lost = foreign_attempts::lost(&*store, &session, attempts).await;
            let _ = events.send(Event::Input(Input::ResumedLost(lost)));
        });
    }

    fn submit(&self, submit: onward_protocol::worker::Submit, payloads: Arc<[Bytes]>) {
        let Some(engine) = self.engine.as_ref().map(|engine| engine.engine.clone()) else { return };
        let parent = submit.parent.map(|parent| (parent, self.context(parent)));
        let events = self.events.clone();
        tokio::spawn(async move {
            let (reply, payloads) = match parent {
                Some((parent, None)) => replies::not_held(submit.request, parent.task),
                Some((_, Some(context))) => replies::submit(&engine, Some(&context), &submit, &payloads).await,
                None => replies::submit(&engine, None, &submit, &payloads).await,
            };
            let _ = events.send(Event::Input(Input::Replied(reply, payloads)));
        });
    }

    fn context(&self, attempt: TaskFence) -> Option<Context> {
        self.running.get(&attempt).and_then(Running::context).cloned()
    }

    fn ask(&self, ask: onward_protocol::worker::Ask) {
        let Some(engine) = self.engine.as_ref().map(|engine| engine.engine.clone()) else { return };
        let running = self.running.iter().find(|(attempt, _)| attempt.task == ask.task);
        let context = running.and_then(|(_, running)| running.context()).cloned();
        let events = self.events.clone();
        tokio::spawn(async move {
            let (reply, payloads) = replies::ask(&engine, context.as_ref(), ask).await;
            let _ = events.send(Event::Input(Input::Replied(reply, payloads)));
        });
    }

    /// Reads a message of a new connection, to find out whether it continues a session.
    pub(in crate::gateway) fn is_hello(frames: &[Bytes]) -> Option<Box<onward_protocol::worker::Hello>> {
        let header = frames.first().filter(|header| header.len() <= protocol_bounds::HEADER_BYTES)?;
        if !header.windows(7).any(|bytes| bytes == b"\"hello\"") {
            return None;
        }
        match WorkerMessage::read(frames) {
            Ok(WorkerMessage::Hello(hello)) => Some(hello),
            _ => None,
        }
    }

    /// Ends the session: waits until the engine has written every end.
    pub(in crate::gateway) async fn finish(mut self, received: mpsc::UnboundedReceiver<Event>) -> Ended {
        // Attempts that start now end as released.
        drop(received);
        self.running.clear();
        if let Some(engine) = self.engine.take() {
            engine.stop().await;
        }
        self.ended.unwrap_or(Ended { why: "the session was dropped".to_owned(), was_welcome: false, had_fault: false })
    }
}

/// Describes an attempt for the worker.
fn offer(attempt: TaskFence, context: &Context) -> Offer {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let task = Task {
        task: attempt.task,
        fence: attempt.fence,
        kind: context.kind().to_string(),
        attempt: context.attempt(),
        payload: None,
        checkpoint: None,
        queue: Some(context.queue().to_string()).filter(|queue| queue != "default"),
        priority: Some(context.priority().0).filter(|priority| *priority != 128),
        deadline_ms: context.time_left().map(milliseconds),
        heartbeat_ms: context.heartbeat_timeout().map(milliseconds),
        group: context.group().map(ToString::to_string),
        parent: context.parent().map(|parent| onward_protocol::Id(parent.0)),
        tags: context.tags().iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        scheduled_at: context.scheduled_at().map(|at| at.to_string()),
        items: Some(context.item_count()).filter(|items| *items > 0),
        turn: None,
    };
    let (payload, checkpoint) = (context.payload().clone(), context.checkpoint_bytes().cloned());
    Offer { attempt, task, payload, checkpoint, events: Vec::new() }
}
