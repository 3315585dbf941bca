//! The OpenAPI document, made from the table of routes.

use axum::http::Method;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, PathsBuilder,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
    Response, ResponseBuilder,
};

use super::route::{Access, Content, NamedSchema, Returns, Route, Takes};
use super::table::all_routes;
use crate::http::problem::ProblemBody;

const DESCRIPTION: &str = "Runs work that must not get lost. Ids are decimal strings, times RFC 3339 in UTC, durations \
                           texts such as `1h30m`. Errors are problems (RFC 9457) with a stable `code`.";

/// Returns the OpenAPI 3.1 document of the API, as JSON with indentation and a line break at the
/// end.
#[must_use]
pub fn openapi_json() -> String {
    // The document has only texts and numbers, so it can always be written.
    let mut text = document().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

fn document() -> OpenApi {
    let routes = all_routes();
    let mut paths = PathsBuilder::new();
    for route in &routes {
        paths = paths.path(route.path, PathItem::new(method(&route.method), operation(route)));
    }
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").build();
    let info =
        InfoBuilder::new().title("Onward").version("1").description(Some(DESCRIPTION)).license(Some(license)).build();
    OpenApiBuilder::new().info(info).paths(paths.build()).components(Some(components(&routes))).build()
}

fn method(method: &Method) -> HttpMethod {
    match method.as_str() {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn components(routes: &[Route]) -> Components {
    let mut components = ComponentsBuilder::new();
    let problem = NamedSchema::of::<ProblemBody>();
    let schemas = routes.iter().flat_map(schemas_of).chain([problem]);
    for (name, schema) in schemas.flat_map(|schema| schema.all) {
        components = components.schema(name, schema);
    }
    let key =
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A key of `onward key create`.")).build();
    components.security_scheme("key", SecurityScheme::Http(key)).build()
}

fn schemas_of(route: &Route) -> Vec<NamedSchema> {
    let taken = match &route.takes {
        Takes::Json(schema) | Takes::OptionalJson(schema) | Takes::JsonOrRaw(schema) => Some(schema.clone()),
        Takes::Nothing | Takes::AnyJson | Takes::Text(_) => None,
    };
    let returned = route.returns.iter().filter_map(|returns| match &returns.content {
        Content::Json(schema) | Content::Page(schema) => Some(schema.clone()),
        Content::Nothing | Content::Other(_) => None,
    });
    taken.into_iter().chain(returned).collect()
}

fn operation(route: &Route) -> OperationBuilder {
    let mut operation = OperationBuilder::new().summary(Some(route.summary)).operation_id(Some(operation_id(route)));
    if let Some(tag) = tag(route.path) {
        operation = operation.tag(tag);
    }
    for parameter in path_parameters(route.path).chain(header_parameters(route)).chain(route.query.iter().cloned()) {
        operation = operation.parameter(parameter);
    }
    operation = operation.request_body(request_body(&route.takes));
    for returns in &route.returns {
        operation = operation.response(returns.status.to_string(), response(returns));
    }
    let problem = ContentBuilder::new().schema(Some(reference(&NamedSchema::of::<ProblemBody>()))).build();
    let problem = ResponseBuilder::new().description("A problem.").content("application/problem+json", problem).build();
    operation = operation.response("default", problem);
    match route.access {
        Access::Open | Access::SignsIn => operation,
        Access::Needs(role) => operation
            .description(Some(format!("Needs the role `{role}`.")))
            .security(SecurityRequirement::new("key", Vec::<String>::new())),
    }
}

/// Returns the first part of a path, which groups the operations.
fn tag(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/")?.split(['/', ':', '.']).next()
}

/// Returns a name such as `post_tasks_id_cancel`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/v1/").replace(['{', '}'], "").replace(['/', ':', '.', '-'], "_");
    format!("{}_{path}", route.method.as_str().to_lowercase())
}

fn path_parameters(path: &str) -> impl Iterator<Item = Parameter> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| parameter(name, ParameterIn::Path, Required::True, None))
}

fn header_parameters(route: &Route) -> impl Iterator<Item = Parameter> {
    route
        .headers
        .iter()
        .map(|(name, description)| parameter(name, ParameterIn::Header, Required::False, Some(description)))
}

fn parameter(name: &str, place: ParameterIn, required: Required, description: Option<&str>) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(description)
        .schema(Some(text))
        .build()
}

fn request_body(takes: &Takes) -> Option<RequestBody> {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    let json = |schema: &NamedSchema| ContentBuilder::new().schema(Some(reference(schema))).build();
    let any = || ContentBuilder::new().schema(Some(anything())).build();
    let body = match takes {
        Takes::Nothing => return None,
        Takes::Json(schema) => body.content("application/json", json(schema)),
        Takes::OptionalJson(schema) => body.required(Some(Required::False)).content("application/json", json(schema)),
        Takes::JsonOrRaw(schema) => body.content("application/json", json(schema)).content("*/*", any()),
        Takes::AnyJson => body.content("application/json", any()),
        Takes::Text(content_type) => body.content(*content_type, any()),
    };
    Some(body.build())
}

fn response(returns: &Returns) -> Response {
    let response = ResponseBuilder::new().description(returns.description);
    let response = match &returns.content {
        Content::Nothing => response,
        Content::Json(schema) => {
            response.content("application/json", ContentBuilder::new().schema(Some(reference(schema))).build())
        }
        Content::Page(schema) => {
            response.content("application/json", ContentBuilder::new().schema(Some(page_of(schema))).build())
        }
        Content::Other(content_type) => {
            response.content(*content_type, ContentBuilder::new().schema(Some(anything())).build())
        }
    };
    response.build()
}

fn reference(schema: &NamedSchema) -> RefOr<Schema> {
    Ref::from_schema_name(schema.name.as_str()).into()
}

fn anything() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

fn page_of(schema: &NamedSchema) -> ObjectBuilder {
    let next = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some("The value for `cursor` that returns the next page; null after the last page."));
    ObjectBuilder::new()
        .property("items", ArrayBuilder::new().items(reference(schema)))
        .property("next", next)
        .required("items")
        .required("next")
}
