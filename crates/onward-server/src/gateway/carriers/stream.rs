//! A worker on a stream of its own.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use onward_protocol::frame::{Decoder, Limits, encode};
use onward_protocol::{Code, Error};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::gateway::bounds::{READ_BYTES, UNSENT_BYTES};
use crate::gateway::options::{Ended, Gateway};
use crate::gateway::session::Input;
use crate::gateway::worker::{Driver, Event};

impl Gateway {
    /// Serves one worker on a stream until the session is over, and returns the reason. The worker
    /// cannot connect again: when the stream ends, its attempts count as crashed.
    ///
    /// The future must run to its end: dropped earlier, it leaves attempts to their lease.
    pub async fn serve_stream<S>(&self, stream: S) -> Ended
    where
        S: AsyncRead + AsyncWrite + Send,
    {
        let (driver, events) = Driver::new(self, false);
        let (reader, writer) = tokio::io::split(stream);
        let connection = Connection {
            gateway: self.clone(),
            driver,
            events,
            reader,
            writer,
            decoder: Decoder::new(Limits { payload: 0 }),
            unsent: BytesMut::new(),
            blocked_since: None,
            reads: true,
        };
        connection.serve().await
    }
}

struct Connection<R, W> {
    gateway: Gateway,
    driver: Driver,
    events: UnboundedReceiver<Event>,
    reader: R,
    writer: W,
    decoder: Decoder,
    /// The bytes that the worker has not taken.
    unsent: BytesMut,
    /// The time at which the worker took bytes for the last time, if some wait.
    blocked_since: Option<Duration>,
    /// False once the stream has ended or cannot be read.
    reads: bool,
}

/// The next thing that happens to a connection.
enum ConnectionInput {
    Read(io::Result<usize>),
    Wrote(io::Result<usize>),
    Event(Option<Event>),
    Drain,
    Abort,
    Tick,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<R, W> {
    async fn serve(mut self) -> Ended {
        let mut is_draining = false;
        while !self.driver.is_closed() {
            match self.next(is_draining).await {
                ConnectionInput::Read(read) => self.read(read).await,
                ConnectionInput::Wrote(Ok(0)) => self.lost("the connection takes no bytes").await,
                ConnectionInput::Wrote(Ok(count)) => {
                    self.unsent.advance(count);
                    self.blocked_since = None;
                }
                ConnectionInput::Wrote(Err(error)) => self.lost(&format!("the connection broke: {error}")).await,
                ConnectionInput::Event(event) => self.driver.events(event, &mut self.events).await,
                ConnectionInput::Drain => {
                    is_draining = true;
                    self.driver.drain(self.gateway.options.stop_within).await;
                }
                ConnectionInput::Abort => self.driver.abort().await,
                ConnectionInput::Tick => self.tick().await,
            }
            self.encode();
        }
        self.flush().await;
        let Self { driver, events, reader, writer, .. } = self;
        // The worker sees the end of the session before its last ends are written.
        drop((reader, writer));
        driver.finish(events).await
    }

    /// Waits for the next thing that happens.
    async fn next(&mut self, is_draining: bool) -> ConnectionInput {
        let wait = self.wake_at().map(|at| at.saturating_sub(self.driver.now()));
        self.decoder.buffer().reserve(READ_BYTES);
        tokio::select! {
            biased;
            () = self.gateway.abort.cancelled() => ConnectionInput::Abort,
            () = self.gateway.drain.cancelled(), if !is_draining => ConnectionInput::Drain,
            read = self.reader.read_buf(self.decoder.buffer()), if self.reads => ConnectionInput::Read(read),
            written = self.writer.write(&self.unsent), if !self.unsent.is_empty() => ConnectionInput::Wrote(written),
            event = self.events.recv(), if self.unsent.len() < UNSENT_BYTES => ConnectionInput::Event(event),
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => ConnectionInput::Tick,
        }
    }

    fn wake_at(&self) -> Option<Duration> {
        let blocked = self.blocked_since.map(|since| since.saturating_add(self.driver.heartbeat()));
        self.driver.wake_at().into_iter().chain(blocked).min()
    }

    async fn read(&mut self, read: io::Result<usize>) {
        match read {
            Ok(0) => {
                self.reads = false;
                if self.decoder.is_within_message() {
                    let error = Error::new(Code::BadFrame, "the connection ended within a message");
                    self.driver.input(Input::Malformed(error)).await;
                }
                self.lost("the worker closed its connection").await;
            }
            Ok(_) => self.messages().await,
            Err(error) => {
                self.reads = false;
                self.lost(&format!("the connection broke: {error}")).await;
            }
        }
    }

    async fn messages(&mut self) {
        while !self.driver.is_closed() {
            self.decoder.set_limits(Limits { payload: self.driver.payload_limit() });
            match self.decoder.next_message() {
                Ok(Some(frames)) => self.driver.input(Input::Message(frames)).await,
                Ok(None) => return,
                Err(error) => {
                    self.reads = false;
                    return self.driver.input(Input::Malformed(error)).await;
                }
            }
        }
    }

    async fn lost(&mut self, why: &str) {
        self.unsent.clear();
        self.driver.input(Input::Disconnected(why.to_owned())).await;
    }

    async fn tick(&mut self) {
        let limit = self.driver.heartbeat();
        let now = self.driver.now();
        if self.blocked_since.is_some_and(|since| now >= since.saturating_add(limit)) {
            return self.lost(&format!("the worker took no bytes for {limit:?}")).await;
        }
        self.driver.input(Input::Tick).await;
    }

    fn encode(&mut self) {
        for frames in self.driver.writer.take() {
            encode(&frames, &mut self.unsent);
        }
        if self.unsent.is_empty() {
            self.blocked_since = None;
        } else if self.blocked_since.is_none() {
            self.blocked_since = Some(self.driver.now());
        }
    }

    /// Sends the remaining messages, for at most a heartbeat.
    async fn flush(&mut self) {
        let limit = self.driver.heartbeat();
        let sending = async {
            self.writer.write_all(&self.unsent).await?;
            self.writer.shutdown().await
        };
        if let Ok(Err(error)) = tokio::time::timeout(limit, sending).await {
            tracing::debug!(%error, "the last messages did not reach the worker");
        }
    }
}
