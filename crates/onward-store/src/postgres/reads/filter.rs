//! The filter of a listing as an SQL condition.

use tokio_postgres::types::{ToSql, Type};

use crate::api::store::TaskFilter;
use crate::api::timestamp::Timestamp;
use crate::postgres::load::query::code;

/// A parameter and its type.
type Parameter = (Box<dyn ToSql + Sync + Send>, Type);

/// Conditions on a task `t`, with their parameters.
#[derive(Default)]
pub(super) struct Condition {
    terms: Vec<String>,
    parameters: Vec<Parameter>,
}

impl Condition {
    /// Returns the conditions of a filter.
    pub(in crate::postgres) fn of(filter: &TaskFilter) -> Self {
        let mut condition = Self::default();
        condition.names(filter);
        condition.times(filter);
        condition.tags(filter);
        condition
    }

    /// Adds the conditions on names, keys, relations and states.
    fn names(&mut self, filter: &TaskFilter) {
        let text = |name: &crate::api::name::Name| Box::new(name.to_string());
        for (column, name) in [("kind", &filter.kind), ("queue", &filter.queue), ("task_group", &filter.group)] {
            if let Some(name) = name {
                self.add(&format!("t.{column} = $"), text(name), Type::TEXT);
            }
        }
        if let Some(key) = &filter.key {
            self.add("t.key = $", Box::new(key.clone().into_bytes()), Type::BYTEA);
        }
        if let Some(prefix) = &filter.key_prefix {
            let term = format!("substring(t.key FROM 1 FOR {}) = $", prefix.len());
            self.add(&term, Box::new(prefix.clone().into_bytes()), Type::BYTEA);
        }
        if let Some(parent) = filter.parent {
            self.add("t.parent = $", Box::new(parent.0), Type::INT8);
        }
        if let Some(batch) = filter.batch {
            let term = "EXISTS (SELECT 1 FROM {s}.batch_item m WHERE m.task = t.id AND m.batch = $)";
            self.add(term, Box::new(batch.0), Type::INT8);
        }
        if !filter.states.is_empty() {
            let states: Vec<i16> = filter.states.iter().map(code).collect();
            self.add("t.state = ANY($)", Box::new(states), Type::INT2_ARRAY);
        }
        if let Some(is_one) = filter.orchestration {
            self.terms.push(if is_one { "t.instance IS NOT NULL" } else { "t.instance IS NULL" }.to_owned());
        }
        if let Some(requested) = filter.cancel_requested {
            self.add("t.cancel_requested = $", Box::new(requested), Type::BOOL);
        }
    }

    /// Adds the conditions on times and priorities.
    fn times(&mut self, filter: &TaskFilter) {
        let bounds = [
            ("t.submitted_at >= $", filter.submitted_from),
            ("t.submitted_at < $", filter.submitted_before),
            ("t.finished_at >= $", filter.finished_from),
            ("t.finished_at < $", filter.finished_before),
        ];
        for (term, at) in bounds {
            if let Some(at) = at.map(Timestamp::as_microseconds) {
                self.add(term, Box::new(at), Type::INT8);
            }
        }
        for (term, priority) in [("t.priority >= $", filter.priority_from), ("t.priority <= $", filter.priority_to)] {
            if let Some(priority) = priority {
                self.add(term, Box::new(i16::from(priority.0)), Type::INT2);
            }
        }
    }

    /// Adds the conditions on tags.
    fn tags(&mut self, filter: &TaskFilter) {
        for (key, value) in filter.tags.iter() {
            let term = "EXISTS (SELECT 1 FROM {s}.task_tag g WHERE g.task = t.id AND g.tag = $)";
            self.add(term, Box::new(format!("{key}={value}").into_bytes()), Type::BYTEA);
        }
        if let Some(prefix) = &filter.tag_key_prefix {
            let term = format!(
                "EXISTS (SELECT 1 FROM {{s}}.task_tag g WHERE g.task = t.id AND substring(g.tag FROM 1 FOR {}) = $)",
                prefix.len()
            );
            self.add(&term, Box::new(prefix.clone().into_bytes()), Type::BYTEA);
            // No key contains `=`, so no tag can match such a prefix.
            if prefix.contains('=') {
                self.terms.push("false".to_owned());
            }
        }
    }

    /// Adds a condition, in which `$` is replaced by the number of the parameter.
    pub(in crate::postgres) fn add(&mut self, term: &str, value: Box<dyn ToSql + Sync + Send>, sort: Type) {
        self.parameters.push((value, sort));
        self.terms.push(term.replace('$', &format!("${}", self.parameters.len())));
    }

    /// Adds a parameter, and returns its placeholder.
    pub(in crate::postgres) fn parameter(&mut self, value: Box<dyn ToSql + Sync + Send>, sort: Type) -> String {
        self.parameters.push((value, sort));
        format!("${}", self.parameters.len())
    }

    /// Returns the conjunction of all conditions.
    pub(in crate::postgres) fn text(&self) -> String {
        if self.terms.is_empty() { "true".to_owned() } else { self.terms.join(" AND ") }
    }

    /// Returns the parameters in the order of their numbers.
    pub(in crate::postgres) fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.parameters.iter().map(|(value, sort)| (&**value as &(dyn ToSql + Sync), sort.clone())).collect()
    }
}
