//! `/v1/templates`: templates of workflows, and starts of their runs.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use onward::workflow::StartedRun;
use onward::workflow::library::{StoredTemplate, TemplateQuery, TemplateRecord};
use onward::workflow::template::{TemplateErrors, TemplateFile};
use onward_store::{DocumentCursor, Submitted, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::submit::{ReplyBody, SubmittedBody, respond, result_gone};
use crate::http::access::Role;
use crate::http::change::tagged_tasks;
use crate::http::problem::{Code, Problem};
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{Page, PageQuery, Reply, check_limit, check_text, json, read_duration};

/// The content type of templates.
const YAML: &str = "application/yaml";

/// The age from which on a prune removes templates, unless the request has another.
const UNUSED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    let developer = Access::Needs(Role::Developer);
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/v1/templates", viewer, "Lists the stored templates.", list)
            .query::<PageQuery>()
            .returns_page::<TemplateBody>("A page of templates, by name."),
        route(post.clone(), "/v1/templates:check", viewer, "Checks a template and stores nothing.", check)
            .takes_text(YAML)
            .returns::<TemplateCheckBody>(200, "The errors; none if the template is right."),
        route(post.clone(), "/v1/templates:prune", developer, "Removes stored templates that nothing uses.", prune)
            .takes::<PruneTemplatesBody>()
            .returns::<PrunedTemplatesBody>(200, "The templates that were removed, or would be in a dry run."),
        route(get.clone(), "/v1/templates/{name}", viewer, "Returns a template: NAME, or NAME@LABEL.", show)
            .returns::<TemplateContentBody>(200, "The template."),
        route(Method::PUT, "/v1/templates/{name}", developer, "Stores a template as the newest of its name.", put)
            .takes_text(YAML)
            .returns::<TemplateContentBody>(200, "The template."),
        route(get.clone(), "/v1/templates/{name}/graph", viewer, "Draws a template.", graph)
            .returns_other("text/vnd.mermaid", "The graph of its steps, in Mermaid."),
        route(get, "/v1/templates/{name}/diff", viewer, "Compares two versions of a template.", diff)
            .query::<DiffQuery>()
            .returns_other("text/plain", "The difference, line by line; empty if there is none."),
        route(post, "/v1/templates/{name}/runs", operator, "Starts a run.", start)
            .takes::<StartRunBody>()
            .creates()
            .prefers_wait()
            .returns::<SubmittedBody>(201, "The run was started.")
            .returns::<SubmittedBody>(202, "The run did not end within the time to wait.")
            .returns::<ReplyBody>(200, "The run has ended; or, without `Prefer`, another run has the key."),
    ]
}

/// A stored template.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateBody {
    /// The name.
    name: String,
    /// The label of the version.
    label: String,
    /// The hash of the content.
    hash: String,
    /// The time at which it was stored first.
    #[schema(value_type = String, format = DateTime)]
    stored_at: Timestamp,
    /// True if it is the newest of its name.
    is_newest: bool,
}

impl From<TemplateRecord> for TemplateBody {
    fn from(record: TemplateRecord) -> Self {
        let TemplateRecord { name, label, hash, put_at, is_newest, .. } = record;
        Self { name, label, hash: hash.to_string(), stored_at: put_at, is_newest }
    }
}

/// A template with its content.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateContentBody {
    /// The template.
    template: TemplateBody,
    /// The content, in its canonical form.
    content: Value,
}

/// The stored templates to remove: those that are not the newest of their name and that no run
/// pins.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PruneTemplatesBody {
    /// Only templates that were stored longer ago than this. Default: `7d`.
    older_than: Option<String>,
    /// True removes nothing. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Removed templates.
#[derive(Debug, Serialize, ToSchema)]
struct PrunedTemplatesBody {
    /// The templates.
    templates: Vec<TemplateBody>,
}

/// The errors of a template.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateCheckBody {
    /// The errors.
    errors: Vec<TemplateErrorBody>,
}

/// An error of a template.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateErrorBody {
    /// The line, counted from 1.
    line: u32,
    /// The column, counted from 1.
    column: u32,
    /// The fault and the remedy.
    message: String,
}

/// The version to compare with.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// The label of the other version.
    with: String,
}

/// A start of a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StartRunBody {
    /// The input. Default: null.
    #[serde(default)]
    input: Value,
    /// The environment of the template. Default: none.
    environment: Option<String>,
    /// A key for a template without one: a second start with it finds the first run.
    key: Option<String>,
}

async fn list(call: Call) -> Reply {
    let query: PageQuery = call.query()?;
    let after = query.cursor.as_deref().map(decode_cursor::<DocumentCursor>).transpose()?;
    let page = call.server.engine.templates(TemplateQuery { after, limit: check_limit(query.limit)? }).await?;
    let items = page.templates.into_iter().map(TemplateBody::from).collect();
    json(&Page { items, next: page.next.as_ref().map(encode_cursor) })
}

async fn prune(call: Call) -> Reply {
    let PruneTemplatesBody { older_than, dry_run } = call.json()?;
    let age = older_than.as_deref().map_or(Ok(UNUSED_FOR), read_duration);
    let age = age.map_err(|message| Problem::invalid("older_than", message, "write it as 7d"))?;
    let engine = &call.server.engine;
    let found = if dry_run { engine.unused_templates(age).await? } else { engine.prune_templates(age).await? };
    json(&PrunedTemplatesBody { templates: found.into_iter().map(TemplateBody::from).collect() })
}

fn text(call: &Call) -> Result<&str, Problem> {
    std::str::from_utf8(&call.body)
        .map_err(|_| Problem::new(Code::Malformed, "the template is not UTF-8", "write it in UTF-8"))
}

async fn check(call: Call) -> Reply {
    let errors = TemplateFile::read("template.yaml", text(&call)?).err().as_ref().map(bodies).unwrap_or_default();
    json(&TemplateCheckBody { errors })
}

fn bodies(errors: &TemplateErrors) -> Vec<TemplateErrorBody> {
    let body = |error: &onward::workflow::template::TemplateError| TemplateErrorBody {
        line: error.position.line,
        column: error.position.column,
        message: error.message.clone(),
    };
    errors.as_slice().iter().map(body).collect()
}

/// Returns the name and the label of the path.
fn reference(call: &Call) -> (&str, Option<&str>) {
    let text = call.parameter("name");
    text.split_once('@').map_or((text, None), |(name, label)| (name, Some(label)))
}

async fn stored(call: &Call) -> Result<StoredTemplate, Problem> {
    let (name, label) = reference(call);
    let found = call.server.engine.template(name, label).await?;
    found.ok_or_else(|| Problem::not_found("template", call.parameter("name"), "store it with PUT first"))
}

fn content(stored: StoredTemplate) -> Reply {
    let content = serde_json::from_str(&stored.canonical).unwrap_or_default();
    json(&TemplateContentBody { template: stored.record.into(), content })
}

async fn show(call: Call) -> Reply {
    content(stored(&call).await?)
}

async fn put(call: Call) -> Reply {
    let name = call.parameter("name");
    let file = TemplateFile::read(&format!("{name}.yaml"), text(&call)?).map_err(|errors| {
        Problem::invalid(
            "body",
            errors.to_string().trim().to_owned(),
            "mend the template; POST /v1/templates:check lists its errors",
        )
    })?;
    if file.template().name != name {
        let detail = format!("the template has the name `{}`, and the path the name `{name}`", file.template().name);
        return Err(Problem::invalid("name", detail, "use the path of its name"));
    }
    call.server.engine.put_template(&file).await?;
    content(stored(&call).await?)
}

fn read(stored: &StoredTemplate) -> Result<TemplateFile, Problem> {
    stored.read().map_err(|errors| Problem::new(Code::Conflict, errors.to_string(), "use a newer version of Onward"))
}

async fn graph(call: Call) -> Reply {
    let stored = stored(&call).await?;
    Ok(plain("text/vnd.mermaid", read(&stored)?.template().to_mermaid()))
}

async fn diff(call: Call) -> Reply {
    let DiffQuery { with } = call.query()?;
    let one = stored(&call).await?;
    let (name, _) = reference(&call);
    let other = call.server.engine.template(name, Some(&with)).await?;
    let other = other.ok_or_else(|| Problem::not_found("template", &format!("{name}@{with}"), "look at the list"))?;
    Ok(plain("text/plain; charset=utf-8", other.diff(&one)))
}

fn plain(content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

async fn start(call: Call) -> Reply {
    let wait = call.wait()?;
    let StartRunBody { input, environment, key } = call.json()?;
    key.as_deref().map_or(Ok(()), |key| check_text("key", key))?;
    // A template that is not stored is an error of the path, not of the body.
    stored(&call).await?;
    if let Some(request) = &call.repeats {
        let first = tagged_tasks(&*call.server.store, request.digest()).await?.into_iter().next();
        let id = first.ok_or_else(result_gone)?.id;
        return respond(&call, Submitted::Inserted { id }, wait).await;
    }
    let (name, label) = reference(&call);
    let mut start = call.server.engine.start_run(name).input(&input);
    if let Some(label) = label {
        start = start.version(label);
    }
    if let Some(environment) = environment {
        start = start.environment(environment);
    }
    if let Some(key) = key {
        start = start.key_if_none(key);
    }
    let StartedRun { id, is_new, has_other_input, .. } = start.await?;
    if has_other_input {
        let detail = format!("run {id} has the key of this start, and another input");
        return Err(Problem::new(Code::KeyTaken, detail, "use the input of that run, or another key"));
    }
    let submitted = if is_new { Submitted::Inserted { id } } else { Submitted::Duplicate { id } };
    respond(&call, submitted, wait).await
}
