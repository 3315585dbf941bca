//! A route: its path, the role that it needs, its input, its output and its handler.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use axum::http::Method;
use futures_util::future::BoxFuture;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, ToSchema};

use crate::http::access::Role;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::Reply;

/// A schema by its name, and the schemas that it refers to.
#[derive(Clone)]
pub(super) struct NamedSchema {
    pub(super) name: String,
    pub(super) all: Vec<(String, RefOr<Schema>)>,
}

impl NamedSchema {
    pub(super) fn of<T: ToSchema>() -> Self {
        let name = T::name().into_owned();
        let mut all = vec![(name.clone(), T::schema())];
        T::schemas(&mut all);
        Self { name, all }
    }
}

/// The access that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No credential.
    Open,
    /// A key with this role, or with a higher one.
    Needs(Role),
    /// A key, or a name and a password in the body.
    SignsIn,
}

/// The body that a route takes.
#[derive(Clone)]
pub(super) enum Takes {
    /// No body.
    Nothing,
    /// A body of JSON.
    Json(NamedSchema),
    /// A body of JSON, or none.
    OptionalJson(NamedSchema),
    /// A body of JSON, or of any other content type as it is.
    JsonOrRaw(NamedSchema),
    /// Any JSON value.
    AnyJson,
    /// A text.
    Text(&'static str),
}

/// A response without a problem.
#[derive(Clone)]
pub(super) struct Returns {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) content: Content,
}

/// The content of a response.
#[derive(Clone)]
pub(super) enum Content {
    /// None.
    Nothing,
    /// JSON.
    Json(NamedSchema),
    /// A page of items.
    Page(NamedSchema),
    /// Any other content type.
    Other(&'static str),
}

type Handler = Arc<dyn Fn(Call) -> BoxFuture<'static, Reply> + Send + Sync>;

/// A route.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(super) summary: &'static str,
    /// True if it creates something, so that it takes an idempotency key.
    pub(crate) creates: bool,
    /// True if it may wait for longer than a request.
    pub(crate) waits: bool,
    /// True if a request uses something up.
    uses_up: bool,
    /// True if the one-time link is its credential.
    by_link: bool,
    pub(super) is_recorded: bool,
    pub(super) query: Vec<Parameter>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) takes: Takes,
    pub(super) returns: Vec<Returns>,
    pub(crate) handler: Handler,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// A route, as tests see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteInfo {
    /// The method.
    pub method: Method,
    /// The pattern of the path.
    pub path: &'static str,
    /// The role that it needs; `None` for a route without a credential, and for the sign-in, which
    /// takes a key or a password.
    pub role: Option<Role>,
}

impl From<&Route> for RouteInfo {
    fn from(route: &Route) -> Self {
        let role = match route.access {
            Access::Open | Access::SignsIn => None,
            Access::Needs(role) => Some(role),
        };
        Self { method: route.method.clone(), path: route.path, role }
    }
}

/// Declares a route.
pub(super) fn route<F, Fut>(
    method: Method,
    path: &'static str,
    access: Access,
    summary: &'static str,
    handler: F,
) -> Route
where
    F: Fn(Call) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Reply> + Send + 'static,
{
    Route {
        is_recorded: method != Method::GET,
        method,
        path,
        access,
        summary,
        creates: false,
        waits: false,
        uses_up: false,
        by_link: false,
        query: Vec::new(),
        headers: Vec::new(),
        takes: Takes::Nothing,
        returns: Vec::new(),
        handler: Arc::new(move |call| Box::pin(handler(call))),
    }
}

impl Route {
    /// Takes these parameters in its query.
    pub(super) fn query<T: IntoParams>(mut self) -> Self {
        self.query = T::into_params(|| Some(ParameterIn::Query));
        self
    }

    /// Takes a body of JSON.
    pub(super) fn takes<T: ToSchema>(mut self) -> Self {
        self.takes = Takes::Json(NamedSchema::of::<T>());
        self
    }

    /// Takes a body of JSON, or none.
    pub(super) fn takes_optional<T: ToSchema>(mut self) -> Self {
        self.takes = Takes::OptionalJson(NamedSchema::of::<T>());
        self
    }

    /// Takes a body of JSON, or of any other content type.
    pub(super) fn takes_json_or_raw<T: ToSchema>(mut self) -> Self {
        self.takes = Takes::JsonOrRaw(NamedSchema::of::<T>());
        self
    }

    /// Takes any JSON value.
    pub(super) fn takes_any_json(mut self) -> Self {
        self.takes = Takes::AnyJson;
        self
    }

    /// Takes any content.
    pub(super) fn takes_any_content(mut self) -> Self {
        self.takes = Takes::Text("*/*");
        self
    }

    /// Takes a text of a content type.
    pub(super) fn takes_text(mut self, content_type: &'static str) -> Self {
        self.takes = Takes::Text(content_type);
        self
    }

    /// Takes a header.
    pub(super) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.headers.push((name, description));
        self
    }

    /// Takes an idempotency key.
    pub(super) fn creates(mut self) -> Self {
        self.creates = true;
        self.header("Idempotency-Key", "A repeated request with the same key has no second effect. Kept for a day.")
    }

    /// Waits as `Prefer` asks for.
    pub(super) fn prefers_wait(self) -> Self {
        self.waits().header("Prefer", "`wait=30s` waits for the end, for at most a minute.")
    }

    /// May take longer than other requests.
    pub(super) fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Uses something up, although its method is GET. It serves no HEAD.
    pub(super) fn uses_up(mut self) -> Self {
        self.uses_up = true;
        self
    }

    /// Has the one-time link as its credential, so that its audit record names the link.
    pub(super) fn by_link(mut self) -> Self {
        self.by_link = true;
        self
    }

    /// Returns true if the one-time link is its credential.
    pub(crate) fn is_by_link(&self) -> bool {
        self.by_link
    }

    /// Returns true if a request uses something up, so that HEAD must not reach the handler.
    pub(crate) fn is_used_up(&self) -> bool {
        self.uses_up
    }

    /// Writes no audit record, because the thing that it creates is its own record.
    pub(super) fn without_record(mut self) -> Self {
        self.is_recorded = false;
        self
    }

    /// Returns JSON.
    pub(super) fn returns<T: ToSchema>(self, status: u16, description: &'static str) -> Self {
        self.with_return(status, description, Content::Json(NamedSchema::of::<T>()))
    }

    /// Returns a page of items.
    pub(super) fn returns_page<T: ToSchema>(self, description: &'static str) -> Self {
        self.with_return(200, description, Content::Page(NamedSchema::of::<T>()))
    }

    /// Returns another content type.
    pub(super) fn returns_other(self, content_type: &'static str, description: &'static str) -> Self {
        self.with_return(200, description, Content::Other(content_type))
    }

    /// Redirects a browser.
    pub(super) fn returns_redirect(self, description: &'static str) -> Self {
        self.with_return(303, description, Content::Nothing)
    }

    /// Returns a status without a body.
    pub(super) fn returns_nothing(self, description: &'static str) -> Self {
        self.with_return(204, description, Content::Nothing)
    }

    fn with_return(mut self, status: u16, description: &'static str, content: Content) -> Self {
        self.returns.push(Returns { status, description, content });
        self
    }

    /// Returns true if its changes write audit records.
    pub(crate) fn is_audited(&self) -> bool {
        self.is_recorded
    }

    /// Checks that a request has no query and no body that the route would ignore.
    pub(crate) fn check_shape(&self, call: &Call) -> Result<(), Problem> {
        if self.query.is_empty() && call.uri.query().is_some_and(|query| !query.is_empty()) {
            let detail = format!("{} {} takes no query", self.method, self.path);
            return Err(Problem::new(Code::Malformed, detail, "leave the query out"));
        }
        let is_empty = matches!(call.body.trim_ascii(), b"" | b"{}");
        if matches!(self.takes, Takes::Nothing) && !is_empty {
            let detail = format!("{} {} takes no body", self.method, self.path);
            return Err(Problem::new(Code::Malformed, detail, "leave the body out"));
        }
        Ok(())
    }
}
