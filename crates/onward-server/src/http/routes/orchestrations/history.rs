//! `GET /v1/orchestrations/{id}/history`.

use axum::http::Method;
use onward::orchestration::{HistoryEvent, decode_history};
use onward_store::{Store, StoreReads as _, TaskId};

use super::history_event::HistoryEventBody;
use super::target::orchestration;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::{Code, Problem};
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::routes::route::{Access, Route, route};
use crate::http::wire::{Page, PageQuery, Reply, check_limit, json};

/// The largest number of chunks of a history that are read at a time.
const CHUNKS: usize = 100;

pub(super) fn table() -> Vec<Route> {
    let viewer = Access::Needs(Role::Viewer);
    vec![
        route(
            Method::GET,
            "/v1/orchestrations/{id}/history",
            viewer,
            "Lists the events of an orchestration, the oldest first.",
            history,
        )
        .query::<PageQuery>()
        .returns_page::<HistoryEventBody>(
            "A page of events, since it began or continued as new. It ends early after 4 MiB of payloads and results.",
        ),
    ]
}

/// The position in a history: the generation, and the number of the next event. An orchestration
/// that continues as new begins another history.
type HistoryCursor = (u32, u64);

async fn history(call: Call) -> Reply {
    let query: PageQuery = call.query()?;
    let limit = check_limit(query.limit)?;
    let id = orchestration(&call).await?;
    let instance = call.server.engine.orchestration_status(id).await?.record().clone();
    let cursor = query.cursor.as_deref().map(decode_cursor::<HistoryCursor>).transpose()?;
    let (generation, from) = cursor.unwrap_or((instance.generation, 0));
    if generation != instance.generation {
        let detail = format!("orchestration {id} has continued as new since, so this history is gone");
        return Err(Problem::new(Code::Conflict, detail, "read it again from the start").field("cursor"));
    }
    let events = read_events(&*call.server.store, id, from, limit).await?;
    let next = events.last().map(|(number, _)| number + 1).filter(|next| *next < instance.length);
    let shows = call.reads_payloads();
    let items = events.iter().map(|(number, event)| HistoryEventBody::new(*number, event, shows)).collect();
    json(&Page { items, next: next.map(|next| encode_cursor(&(generation, next))) })
}

/// Reads events up to a limit and [`bounds::PAGE_BYTES`]; at least one, if there is one.
async fn read_events(
    store: &dyn Store,
    id: TaskId,
    from: u64,
    limit: usize,
) -> Result<Vec<(u64, HistoryEvent)>, Problem> {
    let (mut events, mut bytes, mut from, mut count) = (Vec::new(), 0, from, 1);
    loop {
        let chunks = store.instance_history(id, from, count).await?;
        let Some(last) = chunks.last() else { return Ok(events) };
        let first = from;
        from = last.first + last.events;
        for chunk in &chunks {
            for (number, event) in (chunk.first..).zip(decode_history(chunk)?).filter(|(number, _)| *number >= first) {
                if events.len() == limit || bytes >= bounds::PAGE_BYTES {
                    return Ok(events);
                }
                bytes += HistoryEventBody::size(&event);
                events.push((number, event));
            }
        }
        let largest = chunks.iter().map(|chunk| chunk.chunk.len()).max().unwrap_or_default().max(1);
        count = (bounds::PAGE_BYTES.saturating_sub(bytes) / largest).clamp(1, CHUNKS);
    }
}
