//! A call of a tool becomes a request of its route.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::http::Uri;
use serde_json::{Map, Value};

use super::tool::Tool;
use super::tools::TOOLS;
use crate::http::access::Actor;
use crate::http::bounds;
use crate::http::pipeline::dispatch;
use crate::http::problem::{Code, Problem};
use crate::http::request::{Call, read_body};
use crate::http::routes::{Access, Route, all_routes};
use crate::http::server::Server;

/// The caller of tools.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) server: Arc<Server>,
    pub(crate) actor: Actor,
    pub(crate) address: Option<IpAddr>,
    /// The number of the request.
    pub(crate) id: String,
}

/// Returns the route of each tool, in their order.
fn tool_routes() -> &'static [Option<Route>] {
    static ROUTES: OnceLock<Vec<Option<Route>>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let routes = all_routes();
        let find = |tool: &Tool| routes.iter().find(|it| it.path == tool.path && it.method.as_str() == tool.method);
        TOOLS.iter().map(|tool| find(tool).cloned()).collect()
    })
}

/// Returns the tools with their routes.
fn tools() -> impl Iterator<Item = (&'static Tool, &'static Route)> {
    TOOLS.iter().zip(tool_routes()).filter_map(|(tool, route)| Some((tool, route.as_ref()?)))
}

impl Caller {
    /// Returns the tools that the caller may use.
    pub(super) fn tools(&self) -> impl Iterator<Item = &'static Tool> + '_ {
        let may_use = |(tool, route): &(&Tool, &Route)| {
            (!tool.writes || self.server.options.mcp_writes) && self.may(route).is_ok()
        };
        tools().filter(may_use).map(|(tool, _)| tool)
    }

    fn may(&self, route: &Route) -> Result<(), Problem> {
        match route.access {
            Access::Needs(role) => self.actor.needs(role),
            Access::Open | Access::SignsIn => Ok(()),
        }
    }

    /// Calls a tool. Returns the text of its result; `None` if there is no such tool.
    pub(super) async fn invoke(&self, name: &str, given: Map<String, Value>) -> Option<Result<String, Problem>> {
        let (tool, route) = tools().find(|(tool, _)| tool.name == name)?;
        Some(self.invoke_route(tool, route, given).await)
    }

    async fn invoke_route(&self, tool: &Tool, route: &Route, given: Map<String, Value>) -> Result<String, Problem> {
        if tool.writes && !self.server.options.mcp_writes {
            let detail = format!("the tool `{}` changes something, and tools only read here", tool.name);
            return Err(Problem::new(Code::Forbidden, detail, "start the server with --mcp-writes"));
        }
        self.may(route)?;
        let parts = tool.request(given).map_err(|fault| Problem::of_message(Code::Malformed, &fault))?;
        let uri: Uri = parts.address.parse().map_err(|_| {
            Problem::new(Code::Malformed, "the arguments are too long for a request", "give shorter ones")
        })?;
        let call = Call {
            server: Arc::clone(&self.server),
            id: self.id.clone(),
            actor: Some(self.actor.clone()),
            address: self.address,
            parameters: parts.parameters,
            uri,
            headers: parts.headers,
            body: parts.body,
            repeats: None,
            idempotency: None,
        };
        let response = dispatch(route, call).await?;
        let body = read_body(response.into_body(), bounds::MCP_READ_BYTES).await?;
        Ok(bounded(&String::from_utf8_lossy(&body)))
    }
}

/// Returns a text of at most [`bounds::MCP_RESULT_BYTES`], and what was left out.
fn bounded(text: &str) -> String {
    let (text, limit) = (text.trim_end(), bounds::MCP_RESULT_BYTES);
    if text.is_empty() {
        return "done".to_owned();
    }
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let rest = text.len() - end;
    format!("{}\n… {rest} more bytes are left out; ask for fewer items with `limit`, or for one thing", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_its_route() {
        for (tool, route) in TOOLS.iter().zip(tool_routes()) {
            assert!(matches!(route.as_ref().map(|it| it.access), Some(Access::Needs(_))), "{}", tool.name);
        }
    }

    #[test]
    fn a_long_result_is_cut_between_characters() {
        let text = "é".repeat(bounds::MCP_RESULT_BYTES);
        let cut = bounded(&text);
        assert!(cut.len() < bounds::MCP_RESULT_BYTES + 200 && cut.contains("more bytes are left out"));
        assert_eq!(bounded("{}\n"), "{}");
        assert_eq!(bounded(""), "done");
    }
}
