//! The path of a request: checks, credential, role, body, records, handler, response.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts as _, RawPathParams};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use axum::routing::{MethodFilter, MethodRouter, get, on};
use bytes::Bytes;
use futures_util::FutureExt as _;

use super::access::{Actor, SignInBody, authenticate_request, check_own_page, sign_in};
use super::bounds;
use super::change::{AuditRecord, ChangeScope, Idempotency, find_request, in_scope};
use super::listen::client_address;
use super::page::page_router;
use super::problem::{Code, Problem};
use super::request::{Call, read_body, read_json};
use super::routes::{Access, Route, all_routes};
use super::server::Server;
use super::wire::Reply;

/// Makes the router of a server, below its base path.
pub(crate) fn make_router(server: &Arc<Server>) -> Router {
    let base = server.options.base_path.clone();
    if base.is_empty() {
        return make_root(server);
    }
    let outside = Arc::clone(server);
    let to_page = move || async move { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, format!("{base}/"))]) };
    Router::new()
        .nest(&format!("{}/", server.options.base_path), make_root(server))
        .route(&server.options.base_path, get(to_page))
        .fallback(move |request: Request<Body>| refuse(Arc::clone(&outside), request, Code::RouteUnknown))
}

/// Makes the router from the table of routes.
fn make_root(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in all_routes() {
        let route = Arc::new(route);
        let (path, method) = (route.path, route.method.clone());
        let server = Arc::clone(server);
        let handler = move |request: Request<Body>| serve(Arc::clone(&server), Arc::clone(&route), request);
        let filter = MethodFilter::try_from(method).unwrap_or(MethodFilter::GET);
        let methods: MethodRouter = on(filter, handler);
        router = router.route(path, methods);
    }
    router = router.merge(page_router(server));
    let (unknown, other) = (Arc::clone(server), Arc::clone(server));
    router
        .fallback(move |request: Request<Body>| refuse(Arc::clone(&unknown), request, Code::RouteUnknown))
        .method_not_allowed_fallback(move |request: Request<Body>| {
            refuse(Arc::clone(&other), request, Code::MethodNotAllowed)
        })
}

pub(super) async fn refuse(server: Arc<Server>, request: Request<Body>, code: Code) -> Response<Body> {
    let detail = format!("{} {} is not known", request.method(), request.uri().path());
    let problem = Problem::new(code, detail, "/v1/openapi.json lists all paths and methods");
    let id = server.request_id();
    with_id(problem.into_response(&id), &id)
}

/// Serves a request of a route.
async fn serve(server: Arc<Server>, route: Arc<Route>, request: Request<Body>) -> Response<Body> {
    // The router passes HEAD to the handlers of GET. The use of the one-time link is no safe GET.
    if *request.method() == Method::HEAD && route.is_used_up() {
        return refuse(server, request, Code::MethodNotAllowed).await;
    }
    let id = server.request_id();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let address = address(&server, request.extensions(), request.headers()).map(|it| it.to_string());
    let response = match handle(&server, &route, request, &id).await {
        Ok(response) => response,
        Err(mut problem) => {
            if problem.code == Code::CredentialInvalid {
                note_refusal(&server, &path, address, &id);
            }
            if let Some(wait) = refused_by_circuit(&server).filter(|_| problem.code == Code::StoreUnavailable) {
                problem = problem.retry_after(seconds(wait));
            }
            problem.into_response(&id)
        }
    };
    let status = response.status();
    server.request_counts.count(status);
    // An open breaker has logged that it opened.
    if status.is_server_error() && !server.is_stopping() && refused_by_circuit(&server).is_none() {
        tracing::error!(request = id, %method, path, status = status.as_u16(), "a request failed");
    }
    if method != Method::GET && response.status().is_success() {
        tracing::info!(request = id, %method, path, status = response.status().as_u16(), "a change");
    }
    if route.is_audited() || route.creates {
        prune(&server);
    }
    with_id(below_base(&server, response), &id)
}

/// Adds the base path to the path of a thing that was created.
fn below_base(server: &Server, mut response: Response<Body>) -> Response<Body> {
    let base = &server.options.base_path;
    let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
    let below = location.filter(|path| path.starts_with('/')).map(|path| format!("{base}{path}"));
    if let Some(location) = below.and_then(|location| HeaderValue::from_str(&location).ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Logs a refused credential and writes an audit record of it, if it is the first of a burst.
fn note_refusal(server: &Arc<Server>, path: &str, address: Option<String>, id: &str) {
    let clock = server.store.clock();
    let Some(count) = server.refusals.count(clock.steady()) else { return };
    let from = address.as_deref().unwrap_or_default();
    tracing::warn!(request = id, path, from, count, "a credential was refused");
    let action = format!("refused credential, {count} since the last record");
    let record = AuditRecord::new(&Actor::unknown(), address, id, action, path);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let written = async { server.store.apply(vec![record.document(clock.now(), 0)?]).await };
        if let Err(error) = written.await {
            tracing::warn!(%error, "the audit record of a refused credential could not be written");
        }
    });
}

/// Prunes old records beside the request.
fn prune(server: &Arc<Server>) {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        if let Err(error) = server.pruner.prune(&*server.store).await {
            tracing::warn!(%error, "old records could not be pruned; the server tries again later");
        }
    });
}

pub(super) fn with_id(mut response: Response<Body>, id: &str) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

async fn handle(server: &Arc<Server>, route: &Arc<Route>, request: Request<Body>, id: &str) -> Reply {
    let (mut parts, body) = request.into_parts();
    let address = address(server, &parts.extensions, &parts.headers);
    let (actor, body) = admit(server, route.access, &parts, body, address).await?;
    let parameters = match RawPathParams::from_request_parts(&mut parts, &()).await {
        Ok(parameters) => parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        Err(_) => return Err(Problem::new(Code::Malformed, "the path is not UTF-8", "encode it as UTF-8")),
    };
    let Parts { uri, headers, .. } = parts;
    let server = Arc::clone(server);
    let number = id.to_owned();
    let call =
        Call { server, id: number, actor, address, parameters, uri, headers, body, repeats: None, idempotency: None };
    dispatch(route, call).await
}

/// Serves a request that its actor may make: checks its shape, finds an earlier request with its
/// idempotency key, and runs the handler within its records.
pub(super) async fn dispatch(route: &Route, mut call: Call) -> Reply {
    if call.uri.path_and_query().is_some_and(|text| text.as_str().contains("%00")) {
        // PostgreSQL keeps no such text.
        return Err(Problem::new(Code::Malformed, "the path or the query has a NUL character", "leave it out"));
    }
    route.check_shape(&call)?;
    let idempotency = idempotency(route, &call)?;
    call.idempotency.clone_from(&idempotency);
    if let Some(request) = &idempotency {
        call.repeats = repeated(&call.server, request).await?;
    }
    let link = Actor::of_link();
    let author = if route.is_by_link() { Some(&link) } else { call.actor.as_ref().filter(|_| route.is_audited()) };
    let audit = author.map(|actor| record(actor, route, &call));
    run(route, call, Arc::new(ChangeScope::new(audit, idempotency))).await
}

/// Checks that a request may be made, and reads its body. A request without a valid credential gets
/// no other information, and its body is not read. The body of a sign-in has the credential, so it
/// is read first, with a lower bound.
async fn admit(
    server: &Server,
    access: Access,
    parts: &Parts,
    body: Body,
    address: Option<IpAddr>,
) -> Result<(Option<Actor>, Bytes), Problem> {
    let (method, headers) = (&parts.method, &parts.headers);
    if access != Access::Open {
        refuse_when_stopping(server)?;
        refuse_when_broken(server.circuits.reads_refused())?;
        super::listen::check_host(&server.options, parts)?;
    }
    let actor = match access {
        Access::Open => None,
        Access::Needs(role) => {
            let actor = authenticate_request(server, method, headers).await?;
            actor.needs(role)?;
            if !method.is_safe() {
                refuse_when_broken(server.circuits.writes_refused())?;
            }
            Some(actor)
        }
        Access::SignsIn if headers.contains_key(header::AUTHORIZATION) => {
            Some(authenticate_request(server, method, headers).await?)
        }
        Access::SignsIn => {
            check_own_page(method, headers)?;
            let body = read_in_time(server, body, bounds::SIGN_IN_BYTES).await?;
            let given: SignInBody = read_json(&body)?;
            return Ok((Some(sign_in(server, given, address).await?), Bytes::new()));
        }
    };
    Ok((actor, read_in_time(server, body, bounds::BODY_BYTES).await?))
}

async fn read_in_time(server: &Server, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let time = server.limits.get().request_time;
    tokio::time::timeout(time, read_body(body, limit)).await.map_err(|_| too_slow())?
}

/// Runs the handler within the scope of its records.
async fn run(route: &Route, call: Call, scope: Arc<ChangeScope>) -> Reply {
    let (server, again) = (Arc::clone(&call.server), call.clone());
    let reply = limited(route, &server, in_scope(Arc::clone(&scope), (route.handler)(call))).await;
    match (reply, scope.idempotency()) {
        // A concurrent request with the same key was faster: its result is that of this request.
        (Err(_), Some(request)) if scope.is_repeated() => {
            let repeats = repeated(&server, request).await?;
            (route.handler)(Call { repeats, ..again }).await
        }
        (reply, _) => reply,
    }
}

async fn limited(route: &Route, server: &Server, reply: impl Future<Output = Reply>) -> Reply {
    // A panic of one request must not close the connection under other requests on it.
    let reply = AssertUnwindSafe(reply).catch_unwind();
    let reply = async { reply.await.unwrap_or_else(|_| Err(panicked())) };
    if route.waits {
        return reply.await;
    }
    tokio::time::timeout(server.limits.get().request_time, reply).await.unwrap_or_else(|_| Err(store_too_slow()))
}

fn record(actor: &Actor, route: &Route, call: &Call) -> AuditRecord {
    let (action, address) = (format!("{} {}", route.method, route.path), call.address.map(|it| it.to_string()));
    AuditRecord::new(actor, address, &call.id, action, call.uri.path())
}

/// Returns the address of the client: that of the connection, or the one that a trusted proxy
/// names.
fn address(server: &Server, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
    let ConnectInfo(peer) = extensions.get::<ConnectInfo<SocketAddr>>()?;
    Some(client_address(&server.options.proxies, peer.ip(), headers))
}

/// Returns the idempotency key of a request.
fn idempotency(route: &Route, call: &Call) -> Result<Option<Idempotency>, Problem> {
    let Some(value) = call.headers.get("idempotency-key") else { return Ok(None) };
    let limit = bounds::IDEMPOTENCY_KEY_BYTES;
    let wrong = |detail: String| Err(Problem::invalid("Idempotency-Key", detail, "leave it out, or send another"));
    if !route.creates {
        return wrong(format!("{} {} takes no idempotency key", route.method, route.path));
    }
    match value.to_str() {
        Ok(key) if (1..=limit).contains(&key.len()) => {
            let owner = call.actor.as_ref().map_or("", Actor::owner);
            let content_type = call.header("content-type").unwrap_or_default();
            let query = call.uri.query().unwrap_or_default();
            let request = [query.as_bytes(), content_type.as_bytes(), &call.body];
            Ok(Some(Idempotency::new(owner, call.uri.path(), key, &request)))
        }
        _ => wrong(format!("the key must have 1 to {limit} visible ASCII characters")),
    }
}

/// Returns the key of a request that was made before with it.
async fn repeated(server: &Server, request: &Idempotency) -> Result<Option<Idempotency>, Problem> {
    match find_request(&*server.store, request).await? {
        None => Ok(None),
        Some(Some(first)) => Ok(Some(first)),
        Some(None) => Err(Problem::new(
            Code::IdempotencyMismatch,
            "the idempotency key was used with another body, query or content type",
            "use a new key for a new request",
        )
        .field("Idempotency-Key")),
    }
}

fn refuse_when_stopping(server: &Server) -> Result<(), Problem> {
    if server.is_stopping() {
        let problem = Problem::new(Code::Stopping, "the server is stopping", "try again, at another server or later");
        return Err(problem.retry_after(1));
    }
    Ok(())
}

/// Refuses a request at once while the store fails, without a call to the store.
fn refuse_when_broken(wait: Option<Duration>) -> Result<(), Problem> {
    let Some(wait) = wait else { return Ok(()) };
    let detail = "the store failed several times in a row, so it is not called for a while";
    let problem = Problem::new(Code::StoreUnavailable, detail, "try again later; the log of the server has the cause");
    Err(problem.retry_after(seconds(wait)))
}

/// Returns the time until the store is called again, if a breaker is open.
fn refused_by_circuit(server: &Server) -> Option<Duration> {
    server.circuits.reads_refused().max(server.circuits.writes_refused())
}

/// Returns whole seconds, rounded up.
fn seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

#[cold]
fn panicked() -> Problem {
    Problem::new(Code::Internal, "the server has a fault", "report it as a fault of Onward, with the log of the server")
}

#[cold]
fn too_slow() -> Problem {
    Problem::new(Code::RequestTimeout, "the body did not arrive in time", "send it again, faster or in parts")
}

#[cold]
fn store_too_slow() -> Problem {
    let detail = "the store did not reply in time, and the change may have been made";
    Problem::new(Code::StoreUnavailable, detail, "read the state, or repeat the request with an Idempotency-Key")
        .retry_after(1)
}
