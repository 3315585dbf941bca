//! A store whose reads and writes a server carries out.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onward_client::{Client, Request, Response};
use onward_store::{
    Changes, Clock, Durability, Error, NotificationReceiver, Outcome, Read, ReadReply, Store, StoreFuture, StoreInfo,
    SystemClock, Write, bounds,
};
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;

use super::changes::Hints;
use super::errors::store_error;
use crate::output::remark;

/// The version of this program, which a server has to have. Writes and reads travel as the types of
/// `onward-store`, which promise no compatibility between versions.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A store behind a server.
#[derive(Debug)]
pub(crate) struct RemoteStore {
    client: Client,
    info: StoreInfo,
    hints: Hints,
    /// The task that follows changes, from the first time that something waits for them.
    follower: OnceLock<AbortHandle>,
}

/// The description that a server gives of its store.
#[derive(Deserialize)]
struct Described {
    version: String,
    backend: String,
    durability: Durability,
    schema: u32,
    payload_limit: usize,
}

#[derive(Serialize)]
struct ReadBody<'r> {
    read: &'r Read,
}

#[derive(Deserialize)]
struct ReadReplyBody {
    reply: ReadReply,
}

#[derive(Serialize)]
struct ApplyBody<'w> {
    writes: &'w [Write],
}

#[derive(Deserialize)]
struct ApplyReplyBody {
    outcomes: Vec<Outcome>,
}

/// The time after which a user is told that the server does not respond. The client repeats a
/// request for longer, because a server may be restarting.
const SILENCE: Duration = Duration::from_secs(2);

/// Returns the description that a server gives of its store. Reports if it does not respond soon.
async fn first_reply(client: &Client) -> onward_client::Result<Response> {
    let mut sent = pin!(client.send(Request::get("/v1/store")));
    if let Ok(reply) = tokio::time::timeout(SILENCE, &mut sent).await {
        return reply;
    }
    remark(format_args!("{} does not respond yet; the request is repeated for up to half a minute", client.url()));
    sent.await
}

impl RemoteStore {
    /// Asks a server for its store.
    ///
    /// # Errors
    /// Returns an error if the text is not an address, no server responds, it refuses the key, or
    /// it has another version.
    pub(crate) async fn open(url: &str) -> Result<Self, Error> {
        let client = Client::builder().url(url).build().map_err(store_error)?;
        let reply = first_reply(&client).await.map_err(store_error)?;
        let described: Described = reply.json().map_err(store_error)?;
        if described.version != VERSION {
            return Err(Error::version(format!(
                "the server is Onward {}, and this program is {VERSION}; use the program of the server's version",
                described.version
            )));
        }
        let info = StoreInfo {
            backend: backend(&described.backend),
            location: client.url().to_owned(),
            durability: described.durability,
            schema: described.schema,
            payload_limit: described.payload_limit,
        };
        Ok(Self { client, info, hints: Hints::new(), follower: OnceLock::new() })
    }

    /// Follows the changes at the server from now on.
    fn follow(&self) {
        let start = || tokio::spawn(self.hints.clone().follow(self.client.clone())).abort_handle();
        // A command that only reads opens no stream: the first caller that waits for a change
        // starts it.
        self.follower.get_or_init(start);
    }
}

fn backend(name: &str) -> &'static str {
    match name {
        "memory" => "memory",
        "postgres" => "postgres",
        _ => "sqlite",
    }
}

/// Returns whether a repeat with an idempotency key returns the outcomes of the first request: a
/// single write that submits.
fn can_be_repeated(writes: &[Write]) -> bool {
    match writes {
        [Write::Submit(_)] => true,
        [Write::All(writes)] => writes.iter().all(|write| matches!(write, Write::Submit(_))),
        _ => false,
    }
}

impl Store for RemoteStore {
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(async move {
            let request = Request::post("/v1/store:apply").json(&ApplyBody { writes: &writes }).map_err(store_error)?;
            // A submission may be repeated, because the key finds the outcome of the first. Other
            // writes might count twice, so a lost connection is an error that says so.
            let request =
                if can_be_repeated(&writes) { request.idempotent(None).map_err(store_error)? } else { request };
            let reply = self.client.send(request).await.map_err(store_error)?;
            Ok(reply.json::<ApplyReplyBody>().map_err(store_error)?.outcomes)
        })
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        Box::pin(async move {
            let request = Request::post("/v1/store:read").json(&ReadBody { read: &read }).map_err(store_error)?;
            let reply = self.client.send(request.repeatable()).await.map_err(store_error)?;
            Ok(reply.json::<ReadReplyBody>().map_err(store_error)?.reply)
        })
    }

    fn changes(&self) -> Changes {
        self.follow();
        Changes::new(&self.hints.changes)
    }

    fn notifications(&self) -> NotificationReceiver {
        self.follow();
        self.hints.notifications.subscribe()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn claim_size(&self) -> usize {
        bounds::CLAIM
    }

    fn info(&self) -> StoreInfo {
        self.info.clone()
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.get() {
            follower.abort();
        }
    }
}
