//! The OpenAPI document.

use std::collections::BTreeMap;

use onward_server::http::{Code, openapi_json, routes};
use serde_json::Value;

const WRITTEN: &str = include_str!("../../../../docs/reference/openapi.json");

fn document() -> Value {
    serde_json::from_str(&openapi_json()).unwrap()
}

/// Shows: W8
#[test]
fn the_document_in_the_reference_is_fresh() {
    assert_eq!(openapi_json(), WRITTEN, "run `cargo xtask docs`");
}

#[test]
fn every_route_is_in_the_document_with_its_security() {
    let document = document();
    for route in routes() {
        let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        assert!(operation["summary"].is_string(), "{route:?}");
        assert_eq!(operation["security"].is_array(), route.role.is_some(), "{route:?}");
    }
    let operations: usize =
        document["paths"].as_object().unwrap().values().map(|it| it.as_object().unwrap().len()).sum();
    assert_eq!(operations, routes().len());
}

#[test]
fn every_reference_has_its_schema() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
}

#[test]
fn operations_and_parameters_are_unambiguous() {
    let document = document();
    let mut ids = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let before = ids.insert(operation["operationId"].as_str().unwrap().to_owned(), (path, method));
            assert_eq!(before, None, "{path} {method}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_path = parameters.iter().filter(|it| it["in"] == "path").count();
            assert_eq!(in_path, path.matches('{').count(), "{path} {method}");
        }
    }
}

#[test]
fn every_code_is_in_the_document() {
    let document = document();
    let listed: Vec<&str> =
        document["components"]["schemas"]["Code"]["oneOf"].as_array().map_or_else(Vec::new, |codes| {
            codes.iter().filter_map(|code| code["const"].as_str().or(code["enum"][0].as_str())).collect()
        });
    let listed = if listed.is_empty() {
        document["components"]["schemas"]["Code"]["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
    } else {
        listed
    };
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(listed, codes);
}
