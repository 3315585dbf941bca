//! Each field of the table: a file in which it has an effect, and one in which it is refused.

use std::collections::BTreeSet;

use super::super::TemplateFile;
use super::super::fields::Place;
use super::reading::errors_of;
use super::schema::fits_schema;

/// The checks that refuse a bad value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusedBy {
    /// The reader and the JSON Schema.
    Both,
    /// The reader alone: a JSON Schema cannot express the rule.
    Reader,
}

use RefusedBy::{Both, Reader};

/// A field, and values for the map in which it stands.
struct Case {
    place: Place,
    field: &'static str,
    /// The map with the field.
    good: &'static str,
    /// The map without it.
    without: &'static str,
    /// The map with a value that is refused.
    bad: &'static str,
    /// A part of the message.
    message: &'static str,
    refused_by: RefusedBy,
}

const fn case(
    place: Place,
    field: &'static str,
    [good, without, bad]: [&'static str; 3],
    message: &'static str,
    refused_by: RefusedBy,
) -> Case {
    Case { place, field, good, without, bad, message, refused_by }
}

/// Returns the file that has this map.
fn file(place: Place, map: &str) -> String {
    let step = |step: &str| format!("steps: {{a: {{{step}}}, b: {{task: t, depends_on: [c]}}, c: {{task: t}}}}\n");
    match place {
        Place::Run => format!("{{{map}}}\n"),
        Place::Step => step(map),
        Place::Undo => step(&format!("task: t, undo: {{{map}}}")),
        Place::Defaults => format!("{{defaults: {{{map}}}, steps: {{a: {{task: t}}}}}}\n"),
        Place::Retry => step(&format!("task: t, retry: {{{map}}}")),
        Place::Each => step(&format!("task: t, each: {{{map}}}")),
        Place::Wait => step(&format!("wait: {{{map}}}")),
        Place::Ask => step(&format!("signal: s, ask: {{{map}}}")),
        Place::Publish => step(&format!("task: t, publishes: [{{{map}}}]")),
    }
}

const S: &str = "steps: {a: {task: t}}";

#[rustfmt::skip]
const RUN: &[Case] = &[
    case(Place::Run, "name", ["name: shop/order, steps: {a: {task: t}}", S, "name: Shop, steps: {a: {task: t}}"], "write: name: shop", Both),
    case(Place::Run, "version", ["version: '3', steps: {a: {task: t}}", S, "version: 1.10, steps: {a: {task: t}}"], "version: '1.10'", Both),
    case(Place::Run, "description", ["description: d, steps: {a: {task: t}}", S, "description: [d], steps: {a: {task: t}}"], "`description` is a text, not a list", Both),
    case(Place::Run, "input_schema", ["input_schema: {type: object}, steps: {a: {task: t}}", S, "input_schema: object, steps: {a: {task: t}}"], "which is a map", Both),
    case(Place::Run, "result_schema", ["result_schema: {type: object}, steps: {a: {task: t}}", S, "result_schema: {$ref: 'https://x/y'}, steps: {a: {task: t}}"], "in another document", Reader),
    case(Place::Run, "result", ["result: \"${{ steps.a.result }}\", steps: {a: {task: t}}", S, "result: \"${{ steps.b.result }}\", steps: {a: {task: t}}"], "`result` uses steps.b, which is no step", Reader),
    case(Place::Run, "key", ["key: \"${{ input.id }}\", steps: {a: {task: t}}", S, "key: '', steps: {a: {task: t}}"], "`key` is empty", Both),
    case(Place::Run, "identity", ["identity: strict, steps: {a: {task: t}}", S, "identity: strict, key: k, steps: {a: {task: t}}"], "`key` does not stand beside `identity: strict`", Both),
    case(Place::Run, "keep_for", ["key: k, keep_for: forever, steps: {a: {task: t}}", "key: k, steps: {a: {task: t}}", "keep_for: 1d, steps: {a: {task: t}}"], "no effect without `key` or `identity: strict`", Both),
    case(Place::Run, "timeout", ["timeout: 2h, steps: {a: {task: t}}", S, "timeout: 2, steps: {a: {task: t}}"], "timeout: 2s", Both),
    case(Place::Run, "on_failure", ["on_failure: hold, steps: {a: {task: t}}", S, "on_failure: undo, steps: {a: {task: t}}"], "no step has an `undo`", Reader),
    case(Place::Run, "queue", ["queue: q, steps: {a: {task: t}}", S, "queue: \"${{ input.q }}\", steps: {a: {task: t}}"], "cannot hold", Both),
    case(Place::Run, "priority", ["priority: 0, steps: {a: {task: t}}", S, "priority: 256, steps: {a: {task: t}}"], "from 0 to 255, not 256", Both),
    case(Place::Run, "tags", ["tags: {a: b}, steps: {a: {task: t}}", S, "tags: {a: 5}, steps: {a: {task: t}}"], "a: '5'", Both),
    case(Place::Run, "group", ["group: \"${{ input.g }}\", steps: {a: {task: t}}", S, "group: \"${{ steps.a.result }}\", steps: {a: {task: t}}"], "cannot use steps", Reader),
    case(Place::Run, "defaults", ["defaults: {retry: 3}, steps: {a: {task: t}}", S, "defaults: {retries: 3}, steps: {a: {task: t}}"], "unknown field `retries` in `defaults`", Both),
    case(Place::Run, "vars", ["vars: {a: 1}, steps: {a: {task: t}}", S, "vars: [1], steps: {a: {task: t}}"], "`vars` is a map", Both),
    case(Place::Run, "environments", ["environments: {test: {timeout: 1m}}, steps: {a: {task: t}}", S, "environments: {test: {steps: {b: {task: t}}}}, steps: {a: {task: t}}"], "cannot add steps", Reader),
    case(Place::Run, "steps", ["steps: {a: {task: t}}", "steps: {a: {task: u}}", "steps: {}"], "at least one step", Both),
];

#[rustfmt::skip]
const STEP: &[Case] = &[
    case(Place::Step, "task", ["task: t", "task: u", "task: onward.each"], "reserved", Reader),
    case(Place::Step, "run", ["run: echo", "run: date", "run: 'echo ${{ input.a }}'"], "a script cannot hold", Both),
    case(Place::Step, "workflow", ["workflow: w@1", "workflow: w", "workflow: w@"], "no version", Both),
    case(Place::Step, "orchestration", ["orchestration: o", "task: o", "orchestration: ''"], "is empty", Both),
    case(Place::Step, "wait", ["wait: 5m", "wait: 6m", "wait: soon"], "is not a duration", Both),
    case(Place::Step, "signal", ["signal: s", "signal: t", "signal: s, task: t"], "has both `signal` and `task`", Both),
    case(Place::Step, "value", ["value: [1]", "value: [2]", "value: \"${{ item }}\""], "`item` and `index` stand only", Reader),
    case(Place::Step, "fail", ["fail: no", "fail: never", "fail: [no]"], "`fail` is a text, not a list", Both),
    case(Place::Step, "depends_on", ["task: t, depends_on: [c]", "task: t", "task: t, depends_on: [c, c]"], "stands twice", Both),
    case(Place::Step, "if", ["task: t, if: input.a", "task: t", "task: t, if: \"${{ input.a }} b\""], "expected an end", Reader),
    case(Place::Step, "chooses", ["task: t, chooses: [b]", "task: t", "fail: t, chooses: [b]"], "does not stand beside `fail`", Both),
    case(Place::Step, "with", ["task: t, with: {}", "task: t", "run: t, with: {}"], "does not stand beside `run`", Both),
    case(Place::Step, "env", ["run: t, env: {A: b}", "run: t", "run: t, env: {a-b: c}"], "no name of an environment variable", Both),
    case(Place::Step, "stdin", ["run: t, stdin: b", "run: t", "task: t, stdin: b"], "no effect without `run`", Both),
    case(Place::Step, "each", ["task: t, each: input.a", "task: t", "task: t, each: [1, 2]"], "each: '[1,2]'", Both),
    case(Place::Step, "parallel", ["task: t, each: input.a, parallel: 1", "task: t, each: input.a", "task: t, parallel: 1"], "no effect without `each`", Both),
    case(Place::Step, "tolerate", ["task: t, each: input.a, tolerate: 5%", "task: t, each: input.a", "task: t, each: input.a, tolerate: some"], "or `all`", Both),
    case(Place::Step, "after", ["task: t, after: 5m", "task: t", "wait: 1s, after: 5m"], "does not stand beside `wait`", Both),
    case(Place::Step, "deadline", ["task: t, deadline: 5m", "task: t", "task: t, deadline: 0s"], "longer than zero", Both),
    case(Place::Step, "otherwise", ["signal: s, deadline: 1m, otherwise: 1", "signal: s, deadline: 1m", "signal: s, otherwise: 1"], "no effect without `deadline`", Both),
    case(Place::Step, "ask", ["signal: s, ask: {title: t}", "signal: s", "task: s, ask: {title: t}"], "no effect without `signal`", Both),
    case(Place::Step, "queue", ["task: t, queue: q", "task: t", "value: t, queue: q"], "does not stand beside `value`", Both),
    case(Place::Step, "priority", ["task: t, priority: 1", "task: t", "task: t, priority: high"], "a whole number", Both),
    case(Place::Step, "group", ["task: t, group: g", "task: t", "signal: t, group: g"], "does not stand beside `signal`", Both),
    case(Place::Step, "tags", ["task: t, tags: {a: b}", "task: t", "task: t, tags: {a=b: c}"], "=", Reader),
    case(Place::Step, "affinity", ["task: t, affinity: a", "task: t", "fail: t, affinity: a"], "does not stand beside `fail`", Both),
    case(Place::Step, "key", ["task: t, key: k", "task: t", "wait: 1s, key: k"], "does not stand beside `wait`", Both),
    case(Place::Step, "ttl", ["task: t, ttl: 1m", "task: t", "task: t, ttl: true"], "`ttl` is a duration", Both),
    case(Place::Step, "retry", ["task: t, retry: 3", "task: t", "task: t, retry: 0"], "from 1 to", Both),
    case(Place::Step, "timeout", ["task: t, timeout: 1m", "task: t", "task: t, timeout: 4000d"], "longer than ten years", Reader),
    case(Place::Step, "heartbeat", ["task: t, heartbeat: 1m", "task: t", "value: t, heartbeat: 1m"], "does not stand beside `value`", Both),
    case(Place::Step, "on_failure", ["task: t, on_failure: continue", "task: t", "task: t, on_failure: stop"], "there are `continue`", Both),
    case(Place::Step, "undo", ["task: t, undo: {task: u}", "task: t", "task: t, undo: {with: 1}"], "has no kind", Both),
    case(Place::Step, "publishes", ["task: t, publishes: [{name: e}]", "task: t", "task: t, publishes: {name: e}"], "a list of maps", Both),
    case(Place::Step, "result_schema", ["task: t, result_schema: {type: object}", "task: t", "fail: t, result_schema: {}"], "does not stand beside `fail`", Both),
];

#[rustfmt::skip]
const WORK: &[Case] = &[
    case(Place::Undo, "task", ["task: t", "task: u", "task: t, run: u"], "has both `task` and `run`", Both),
    case(Place::Undo, "run", ["run: t", "run: u", "run: 5"], "run: '5'", Both),
    case(Place::Undo, "workflow", ["workflow: w@1", "workflow: w", "workflow: W"], "no name of a template", Both),
    case(Place::Undo, "orchestration", ["orchestration: o", "task: o", "orchestration: [o]"], "is a text", Both),
    case(Place::Undo, "with", ["task: t, with: 1", "task: t", "run: t, with: 1"], "does not stand beside `run`", Both),
    case(Place::Undo, "env", ["run: t, env: {A: b}", "run: t", "task: t, env: {A: b}"], "no effect without `run`", Both),
    case(Place::Undo, "retry", ["task: t, retry: 20", "task: t", "task: t, retry: many"], "a number of attempts or a map", Both),
    case(Place::Undo, "timeout", ["task: t, timeout: 1m", "task: t", "task: t, timeout: 1 m"], "is not a duration", Both),
    case(Place::Undo, "queue", ["task: t, queue: q", "task: t", "task: t, queue: {}"], "is a text, not a map", Both),
    case(Place::Defaults, "retry", ["retry: 3", "retry: 4", "retry: 1.5"], "whole number", Both),
    case(Place::Defaults, "timeout", ["timeout: 1m", "timeout: 2m", "timeout: 1 month"], "is not a duration", Both),
    case(Place::Defaults, "heartbeat", ["heartbeat: 1m", "heartbeat: 2m", "heartbeat: 0s"], "longer than zero", Both),
    case(Place::Retry, "attempts", ["attempts: 3", "first: 1s", "attempts: 0"], "from 1 to", Both),
    case(Place::Retry, "backoff", ["attempts: 2, backoff: constant", "attempts: 2", "backoff: expo"], "there are `constant`, `linear` and `exponential`", Both),
    case(Place::Retry, "first", ["attempts: 2, first: 3s", "attempts: 2", "first: 3"], "first: 3s", Both),
    case(Place::Retry, "most", ["attempts: 2, most: 1h", "attempts: 2", "backoff: constant, most: 1h"], "does not stand beside `backoff: constant`", Both),
    case(Place::Retry, "factor", ["attempts: 2, factor: 1.5", "attempts: 2", "factor: 0.5"], "at least 1", Both),
    case(Place::Retry, "increment", ["backoff: linear, increment: 5s", "backoff: linear", "increment: 5s"], "no effect without `backoff: linear`", Both),
    case(Place::Retry, "jitter", ["attempts: 2, jitter: false", "attempts: 2", "jitter: no"], "write: jitter: false", Both),
    case(Place::Each, "from", ["from: 0, to: 9, by: 3", "from: 1, to: 9, by: 3", "to: 9, by: 3"], "has no `from`", Both),
    case(Place::Each, "to", ["from: 0, to: input.n, by: 3", "from: 0, to: 9, by: 3", "from: 0, to: [9], by: 3"], "`to` is an expression, not a list", Both),
    case(Place::Each, "by", ["from: 0, to: 9, by: 3", "from: 0, to: 9, by: 4", "from: 0, to: 9, by: ''"], "expected a value, and there is the end", Both),
    case(Place::Wait, "until", ["until: timestamp(input.at)", "until: timestamp(input.to)", "untill: 5"], "did you mean `until`?", Both),
    case(Place::Ask, "title", ["title: t", "title: u", "schema: {}"], "has no `title`", Both),
    case(Place::Ask, "schema", ["title: t, schema: {type: object}", "title: t", "title: t, schema: []"], "which is a map", Both),
    case(Place::Ask, "who", ["title: t, who: [role:shipping]", "title: t", "title: t, who: [5]"], "an item of `who` is a text", Both),
    case(Place::Publish, "name", ["name: e", "name: f", "when: ended"], "has no `name`", Both),
    case(Place::Publish, "when", ["name: e, when: dead", "name: e", "name: e, when: done"], "there are `completed`", Both),
    case(Place::Publish, "if", ["name: e, if: steps.a.result > 1", "name: e", "name: e, if: steps.b.result > 1"], "add `depends_on: [b]`", Reader),
    case(Place::Publish, "with", ["name: e, with: {a: 1}", "name: e", "name: e, with: \"${{ input\""], "needs a `}}`", Reader),
    case(Place::Publish, "schema", ["name: e, schema: {type: object}", "name: e", "name: e, schema: 5"], "which is a map", Both),
    case(Place::Publish, "delivery", ["name: e, delivery: live", "name: e", "name: e, delivery: fast"], "there are `log`, `task` and `live`", Both),
    case(Place::Publish, "queue", ["name: e, delivery: task, queue: q", "name: e, delivery: task", "name: e, queue: q"], "no effect without `delivery: task`", Both),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    RUN.iter().chain(STEP).chain(WORK)
}

/// Returns one file with an error for each field.
pub(super) fn bad_files() -> impl Iterator<Item = String> {
    cases().map(|case| file(case.place, case.bad))
}

#[test]
fn every_field_of_the_table_has_a_case() {
    let tested: BTreeSet<String> = cases().map(|case| format!("{:?}.{}", case.place, case.field)).collect();
    let known = |place: Place| place.fields().iter().map(move |field| format!("{place:?}.{}", field.name));
    let mut known: BTreeSet<String> = Place::ALL.into_iter().flat_map(known).collect();
    // A list of steps has a test of its own.
    known.remove("Step.name");
    assert_eq!(tested, known);
}

/// Returns everything that a file means, in all its environments.
fn meaning(text: &str) -> String {
    let file = TemplateFile::read("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let in_environments = file.environments().map(|name| file.in_environment(name));
    format!("{:?} {:?}", file.template(), in_environments.collect::<Vec<_>>())
}

#[test]
fn every_field_has_an_effect() {
    for case in cases() {
        let (with, without) = (file(case.place, case.good), file(case.place, case.without));
        assert_ne!(meaning(&with), meaning(&without), "{with}");
    }
}

#[test]
fn every_field_refuses_what_it_is_not() {
    for case in cases() {
        let text = file(case.place, case.bad);
        let errors = errors_of("test.yaml", &text);
        assert_eq!(errors.as_slice().len(), 1, "{errors}");
        assert!(errors.to_string().contains(case.message), "expected `{}`:\n{errors}", case.message);
    }
}

#[test]
fn the_json_schema_accepts_and_refuses_as_the_reader_does() {
    for case in cases() {
        let (good, bad) = (file(case.place, case.good), file(case.place, case.bad));
        assert!(fits_schema(&good), "{good}");
        assert_eq!(fits_schema(&bad), case.refused_by == Reader, "{bad}");
    }
}
