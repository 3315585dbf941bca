//! The table of tools.

use super::tool::{Argument, Form, Place, Tool};

const fn tool(
    name: &'static str,
    path: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
) -> Tool {
    Tool { name, description, method: "GET", path, writes: false, arguments }
}

const fn change(
    name: &'static str,
    path: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
) -> Tool {
    Tool { name, description, method: "POST", path, writes: true, arguments }
}

const fn argument(name: &'static str, place: Place, form: Form, description: &'static str) -> Argument {
    Argument { name, place, form, is_required: false, description }
}

const fn path(name: &'static str, description: &'static str) -> Argument {
    Argument { name, place: Place::Path, form: Form::Text, is_required: true, description }
}

const fn query(name: &'static str, description: &'static str) -> Argument {
    argument(name, Place::Query, Form::Text, description)
}

const LIMIT: Argument =
    argument("limit", Place::Query, Form::Whole, "the largest number of items, 1 to 1000; default 50");
const CURSOR: Argument = query("cursor", "`next` of the page before");
const TASK: Argument = path("id", "the id of the task");
const RUN: Argument = path("id", "the id of the run");
const KEY: Argument =
    argument("idempotency_key", Place::Key, Form::Text, "a text by which a repeated call has no second effect");

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    tool("overview", "/v1/overview", "Shows the state of the store: queues, failures, what is late or held back.", &[]),
    tool("statistics", "/v1/statistics", "Shows durations and sizes of ended tasks, by kind.", &[]),
    tool("list_queues", "/v1/queues", "Lists queues with their counts, weights, limits and pauses.", &[]),
    tool("show_queue", "/v1/queues/{queue}", "Shows a queue.", &[path("queue", "the name of the queue")]),
    tool(
        "list_tasks",
        "/v1/tasks",
        "Lists tasks that meet every given condition.",
        &[
            query("kind", "the kind"),
            query("queue", "the queue"),
            query("group", "the group"),
            query("state", "states, separated by commas, such as waiting,running,dead"),
            query("tag", "a tag, as KEY=VALUE"),
            query("key", "the unique key"),
            LIMIT,
            CURSOR,
        ],
    ),
    tool("show_task", "/v1/tasks/{id}", "Shows a task without its payload and result.", &[TASK]),
    tool("explain_task", "/v1/tasks/{id}/why", "Explains the state of a task: why it waits, or why it ended.", &[TASK]),
    tool("task_attempts", "/v1/tasks/{id}/attempts", "Lists the errors of the attempts of a task.", &[TASK]),
    tool("list_dead_letters", "/v1/dead", "Lists the causes of dead letters with their numbers.", &[LIMIT, CURSOR]),
    tool(
        "show_dead_letter",
        "/v1/dead/{cause}",
        "Shows a cause of dead letters and its newest tasks.",
        &[path("cause", "the cause, as list_dead_letters has it")],
    ),
    tool(
        "list_runs",
        "/v1/runs",
        "Lists runs of workflows, the newest first.",
        &[query("workflow", "the name of the template"), query("state", "states, separated by commas"), LIMIT, CURSOR],
    ),
    tool("show_run", "/v1/runs/{id}", "Shows a run of a workflow and its steps.", &[RUN]),
    tool("list_inbox", "/v1/inbox", "Lists the questions that runs ask people.", &[LIMIT, CURSOR]),
    tool("list_schedules", "/v1/schedules", "Lists schedules with their next time.", &[LIMIT, CURSOR]),
    tool("list_workers", "/v1/workers", "Lists the workers that are registered now.", &[LIMIT, CURSOR]),
    Tool {
        name: "check_template",
        description: "Checks the YAML of a workflow and stores nothing.",
        method: "POST",
        path: "/v1/templates:check",
        writes: false,
        arguments: &[Argument {
            name: "yaml",
            place: Place::Yaml,
            form: Form::Text,
            is_required: true,
            description: "the template",
        }],
    },
    change(
        "submit_task",
        "/v1/tasks",
        "Submits a task.",
        &[
            Argument {
                name: "kind",
                place: Place::Field,
                form: Form::Text,
                is_required: true,
                description: "the kind",
            },
            argument("payload", Place::Field, Form::Any, "the payload, any JSON"),
            argument("queue", Place::Field, Form::Text, "the queue; default: default"),
            argument("group", Place::Field, Form::Text, "the group, whose tasks share limits"),
            argument("key", Place::Field, Form::Text, "a unique key; another task with it is kept"),
            argument("priority", Place::Field, Form::Whole, "the priority, 0 to 255"),
            argument("after", Place::Field, Form::Text, "the delay, such as 1h30m"),
            KEY,
        ],
    ),
    change("retry_task", "/v1/tasks/{id}/retry", "Makes an ended task wait again.", &[TASK]),
    change("cancel_task", "/v1/tasks/{id}/cancel", "Cancels a task.", &[TASK]),
    change(
        "signal_run",
        "/v1/runs/{id}/signals/{name}",
        "Sends a signal to a run. It replies to a question of list_inbox, too: `name` is the question's `signal`.",
        &[
            RUN,
            path("name", "the name of the signal"),
            argument("value", Place::Body, Form::Any, "the value, any JSON"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_parts_of_paths_are_arguments() {
        let names: BTreeSet<_> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        for tool in TOOLS {
            let parts: BTreeSet<_> =
                tool.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}')).collect();
            let given = tool.arguments.iter().filter(|it| it.place == Place::Path).map(|it| it.name);
            assert_eq!(given.collect::<BTreeSet<_>>(), parts, "{}", tool.name);
            assert!(tool.description.ends_with('.'), "{}", tool.name);
        }
    }
}
