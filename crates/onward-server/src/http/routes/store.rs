//! `/v1/store`: the storage interface, for the command line and programs of the same version.
//!
//! Such a program uses the server as its store: it sends each `Read` and each list of `Write`s as
//! JSON, in the form of the Rust types. The form may change with each version, so the program
//! compares versions first. Hints of changes come from `/v1/changes`. `store_access` decides which
//! reads and writes a role may use; claims and ends of attempts have no form in JSON.

use axum::http::Method;
use onward_store::{Outcome, Read, ReadReply, Refusal, Submitted, Write};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::store_access::{check_read, check_write, subjects, without_payloads};
use crate::http::access::Role;
use crate::http::change::{describe_change, tagged_tasks};
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    vec![
        route(Method::GET, "/v1/store", viewer, "Describes the store.", show).returns::<StoreBody>(200, "The store."),
        route(Method::POST, "/v1/store:read", viewer, "Reads for the command line of the same version.", read)
            .takes_any_json()
            .without_record()
            .returns_other("application/json", "The reply, in a form that changes with the version."),
        route(Method::POST, "/v1/store:apply", operator, "Writes for the command line of the same version.", apply)
            .takes_any_json()
            .creates()
            .returns_other("application/json", "The outcomes, in a form that changes with the version."),
    ]
}

/// The store of a server.
#[derive(Debug, Serialize, ToSchema)]
struct StoreBody {
    /// The version of the server. `/v1/store:read` and `/v1/store:apply` serve programs of the same
    /// version.
    version: &'static str,
    /// The backend: `memory`, `sqlite` or `postgres`.
    backend: &'static str,
    /// The durability level: `full`, `normal` or `memory`.
    durability: String,
    /// The number of the schema.
    schema: u32,
    /// The largest payload, in bytes.
    payload_limit: usize,
}

/// A read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadBody {
    read: Read,
}

/// The reply to a read.
#[derive(Debug, Serialize)]
struct ReadReplyBody {
    reply: ReadReply,
}

/// Writes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    writes: Vec<Write>,
}

/// The outcomes of writes.
#[derive(Debug, Serialize)]
struct ApplyReplyBody {
    outcomes: Vec<Outcome>,
}

/// Reads the body, and refuses a NUL character, which PostgreSQL cannot keep in a text. Bytes are
/// lists of numbers in JSON, so they are not affected.
fn checked<T: serde::de::DeserializeOwned>(call: &Call) -> Result<T, Problem> {
    if call.body.windows(6).any(|part| part == b"\\u0000") {
        return Err(Problem::new(Code::Malformed, "the body has a NUL character", "leave it out"));
    }
    call.json()
}

async fn show(call: Call) -> Reply {
    let info = call.server.store.info();
    json(&StoreBody {
        version: env!("CARGO_PKG_VERSION"),
        backend: info.backend,
        durability: info.durability.to_string(),
        schema: info.schema,
        payload_limit: info.payload_limit,
    })
}

async fn read(call: Call) -> Reply {
    let ReadBody { read } = checked(&call)?;
    check_read(&call, &read)?;
    let reply = call.server.store.read(read).await?;
    json(&ReadReplyBody { reply: if call.reads_payloads() { reply } else { without_payloads(reply) } })
}

async fn apply(call: Call) -> Reply {
    let ApplyBody { writes } = checked(&call)?;
    for write in &writes {
        check_write(&call, write).await?;
    }
    if let Some(request) = &call.repeats {
        let tasks = tagged_tasks(&*call.server.store, request.digest()).await?;
        let ids = tasks.into_iter().map(|task| task.id).collect();
        return json(&ApplyReplyBody { outcomes: repeated(writes, ids)? });
    }
    if call.header("idempotency-key").is_some() && writes.len() != 1 {
        let detail = format!("{} writes have one idempotency key", writes.len());
        return Err(Problem::invalid("Idempotency-Key", detail, "send them as one write `all`, or without a key"));
    }
    describe_change(subjects(&writes));
    json(&ApplyReplyBody { outcomes: call.server.store.apply(writes).await? })
}

/// Returns the outcomes of a request that was carried out before. They are known only for submits
/// that all inserted a task.
fn repeated(writes: Vec<Write>, ids: Vec<onward_store::TaskId>) -> Result<Vec<Outcome>, Problem> {
    let [write] = writes.try_into().map_err(|_| result_gone())?;
    let (writes, is_all) = match write {
        Write::All(writes) => (writes, true),
        write => (vec![write], false),
    };
    let are_submits = writes.iter().all(|write| matches!(write, Write::Submit(_)));
    if !are_submits || writes.len() != ids.len() {
        return Err(result_gone());
    }
    let outcomes: Vec<_> = ids.into_iter().map(|id| Outcome::Submitted(Submitted::Inserted { id })).collect();
    Ok(if is_all { vec![Outcome::All(outcomes)] } else { outcomes })
}

#[cold]
fn result_gone() -> Problem {
    Problem::new(
        Code::IdempotencyResultGone,
        "the request was carried out before, and its outcome was not kept",
        "read the state of what it was to change",
    )
}

/// Returns the problem of a write or a read that the route does not carry out.
#[cold]
pub(super) fn not_served(what: &str) -> Problem {
    Problem::from(&Refusal::Invalid(format!("{what} needs the store itself; run it beside the store")))
}
