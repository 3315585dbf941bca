//! The contents of a generated file, before they are written in a language.

use anyhow::Context as _;
use onward::workflow::template::TemplateFile;
use serde_json::Value;

use super::kinds::{kinds, title};
use super::payload::Schemas;
use super::types::{Type, Types};

/// The types, kinds and names of a file.
pub(super) struct Contents {
    pub(super) title: String,
    /// The name of the workflow.
    pub(super) workflow: String,
    pub(super) types: Types,
    pub(super) input: Type,
    /// The name of the type of all handlers.
    pub(super) handlers_name: String,
    pub(super) handlers: Vec<Handler>,
}

/// The types of a kind's handler.
pub(super) struct Handler {
    pub(super) kind: String,
    pub(super) payload: Type,
    pub(super) result: Type,
}

impl Contents {
    /// Reads a template. The names that the language and the code around the types need are taken.
    pub(super) fn read(file: &TemplateFile, taken: &[&str]) -> anyhow::Result<Self> {
        let template = file.template();
        let canonical: Value = serde_json::from_str(file.canonical()).context("the canonical form cannot be read")?;
        let schemas = Schemas::new(template, &canonical);
        let mut types = Types::new(taken);
        let name = template.name.rsplit('/').next().unwrap_or_default();
        let handlers_name = types.take(&format!("{name} handlers"));
        let doc = format!("The input of `{}`.", template.name);
        let input = types.own(&schemas.input(), &format!("{name} input"), &doc);
        if let Some(schema) = &template.result_schema {
            types.own(schema, &format!("{name} result"), &format!("The result of `{}`.", template.name));
        }
        let kinds = kinds(file, &schemas);
        // Results first: payloads refer to them, and have their names then.
        let results: Vec<Type> = kinds
            .values()
            .map(|kind| types.of(&kind.result, &format!("{} result", kind.name), &kind.doc("result")))
            .collect();
        let mut handlers = Vec::new();
        for (kind, result) in kinds.values().zip(results) {
            let payload = types.own(&kind.payload, kind.name, &kind.doc("payload"));
            handlers.push(Handler { kind: kind.name.to_owned(), payload, result });
        }
        Ok(Self { title: title(file), workflow: template.name.to_string(), types, input, handlers_name, handlers })
    }
}
