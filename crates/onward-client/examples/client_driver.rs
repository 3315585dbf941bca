//! The driver of `sdk/conformance/clients.py`: calls of the client, from lines of JSON.
#![expect(clippy::print_stdout, reason = "the results go to standard output")]

use std::io::BufRead as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onward_client::{
    Backoff, Cancellation, Client, Content, Error, Event, NewTask, OnDuplicate, Orchestration, RetryPolicy, Run,
    StartRun, Submitted, TaskOutcome,
};
use serde_json::{Map, Value, json};

type Outcome = Result<Value, Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut client = None;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let outcome = match (&message["client"], &client) {
            (Value::Object(options), _) => {
                client = Some(build(options)?);
                Ok(Value::Null)
            }
            (_, Some(client)) => call(client, text(&message, "call"), &message["args"]).await,
            (_, None) => return Err("the first line is not `client`".into()),
        };
        let reply = outcome.map_or_else(|error| json!({ "raised": raised(&error) }), |value| json!({ "value": value }));
        println!("{reply}");
    }
    Ok(())
}

fn build(options: &Map<String, Value>) -> Result<Client, Error> {
    let retry_for = options.get("retry_for").and_then(seconds);
    let builder = Client::builder();
    retry_for.map_or(builder.clone(), |time| builder.retry_for(time)).build()
}

fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default()
}

async fn call(client: &Client, name: &str, arguments: &Value) -> Outcome {
    let (task, within) = (text(arguments, "task"), seconds(&arguments["within"]));
    match name {
        "submit" => Ok(submitted(&client.submit(&new_task(arguments)?).await?)),
        "submit_many" => {
            let tasks = arguments["tasks"].as_array().into_iter().flatten();
            let tasks = tasks.map(new_task).collect::<Result<Vec<_>, _>>()?;
            Ok(client.submit_many(&tasks).await?.iter().map(submitted).collect())
        }
        "submit_and_wait" => Ok(ended(&client.submit_and_wait(&new_task(arguments)?, within).await?)),
        "wait" => Ok(ended(&client.wait(task, within).await?)),
        "value" => client.wait(task, within).await?.json(),
        "result" => Ok(ended(&client.result(task).await?)),
        "cancel" => Ok(match client.cancel(task).await? {
            Cancellation::Ended => "ended".into(),
            Cancellation::Requested => "requested".into(),
        }),
        "signal" => client.signal(task, text(arguments, "name"), &arguments["payload"]).await.map(|()| Value::Null),
        "start" => Ok(submitted(&client.start(&start(arguments)?).await?)),
        "start_orchestration" => {
            let (kind, key) = (text(arguments, "kind"), arguments["key"].as_str());
            Ok(submitted(&client.start_orchestration(kind, &arguments["payload"], key).await?))
        }
        "run" => Ok(run(&client.run(task).await?)),
        "query" => Ok(orchestration(&client.orchestration(task).await?)),
        "watch" => watch(client, arguments).await,
        other => Ok(format!("the driver has no call `{other}`").into()),
    }
}

fn new_task(arguments: &Value) -> Result<NewTask, Error> {
    let mut task = NewTask::new(text(arguments, "kind"));
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let word = value.as_str().unwrap_or_default();
        let time = seconds(value).unwrap_or_default();
        task = match name.as_str() {
            "payload" => match value["$base64"].as_str() {
                Some(encoded) => task.bytes(&STANDARD.decode(encoded).unwrap_or_default()),
                None => task.json(value)?,
            },
            "queue" => task.queue(word),
            "priority" => task.priority(value.as_u64().and_then(|it| it.try_into().ok()).unwrap_or_default()),
            "key" => task.key(word),
            "keep_key" => task.keep_key_for(time),
            "on_duplicate" => {
                task.on_duplicate(if word == "reject" { OnDuplicate::Reject } else { OnDuplicate::Supersede })
            }
            "delay" => task.after(time),
            "ttl" => task.ttl(time),
            "timeout" => task.timeout(time),
            "heartbeat" => task.heartbeat_timeout(time),
            "group" => task.group(word),
            "affinity" => task.affinity(word),
            "retry" => task.retry(retry(value)),
            "idempotency_key" => task.idempotency_key(word),
            "tags" => value
                .as_object()
                .into_iter()
                .flatten()
                .fold(task, |task, (key, value)| task.tag(key, value.as_str().unwrap_or_default())),
            _ => task,
        };
    }
    Ok(task)
}

fn retry(value: &Value) -> RetryPolicy {
    let attempts = value.as_u64().or(value["attempts"].as_u64()).unwrap_or(5);
    let time = |name: &str, default| seconds(&value[name]).unwrap_or(Duration::from_secs(default)).into();
    let (initial, maximum, factor) = (time("initial", 1), time("maximum", 600), 2.0);
    let backoff = match value["backoff"].as_str() {
        Some("constant") => Backoff::Constant { delay: initial },
        Some("linear") => Backoff::Linear { initial, increment: time("increment", 1), maximum },
        Some("exponential") => Backoff::Exponential { initial, factor, maximum },
        _ => Backoff::ExponentialJitter { initial, factor, maximum },
    };
    RetryPolicy { attempts: attempts.try_into().unwrap_or(u32::MAX), backoff }
}

fn start(arguments: &Value) -> Result<StartRun, Error> {
    let workflow = text(arguments, "workflow");
    let mut start = match arguments["version"].as_str() {
        Some(version) => StartRun::new(format!("{workflow}@{version}")),
        None => StartRun::new(workflow),
    };
    if !arguments["payload"].is_null() {
        start = start.input(&arguments["payload"])?;
    }
    if let Some(name) = arguments["environment"].as_str() {
        start = start.environment(name);
    }
    Ok(match arguments["key"].as_str() {
        Some(key) => start.key(key),
        None => start,
    })
}

async fn watch(client: &Client, arguments: &Value) -> Outcome {
    let after = arguments["after"].as_str();
    let mut query = Vec::new();
    if let Some(kinds) = arguments["kinds"].as_array() {
        query.push(format!("kinds={}", kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("%2C")));
    }
    if arguments["ends"] == true {
        query.push("ends=true".to_owned());
    }
    let mut watch = match arguments["task"].as_str() {
        Some(task) => client.watch_task(task, after),
        None => client.watch(&query.join("&"), after),
    };
    let mut events = Vec::new();
    for _ in 0..arguments["count"].as_u64().unwrap_or_default() {
        events.push(event(&watch.next().await?));
    }
    Ok(events.into())
}

fn submitted(submitted: &Submitted) -> Value {
    json!({ "task": submitted.id, "result": submitted.outcome })
}

fn ended(outcome: &TaskOutcome) -> Value {
    let payload = outcome.result.as_ref().map(|result| String::from_utf8_lossy(result).into_owned());
    json!({ "task": outcome.task, "state": outcome.state, "payload": payload, "error": outcome.error })
}

fn event(event: &Event) -> Value {
    json!({
        "cursor": event.cursor, "change": event.change, "task": event.task, "kind": event.kind, "queue": event.queue,
        "at": event.at, "attempt": event.attempt, "is_end": event.is_end(),
    })
}

fn run(run: &Run) -> Value {
    let steps = run
        .steps
        .iter()
        .map(|step| json!({ "name": step.name, "state": step.state, "task": step.task, "attempts": step.attempts }));
    let steps: Vec<Value> = steps.collect();
    json!({ "task": run.id, "workflow": run.workflow, "phase": run.phase, "is_ended": run.is_ended, "steps": steps })
}

fn orchestration(it: &Orchestration) -> Value {
    let content = |content: &Content| content.json.clone().unwrap_or_default();
    let values: Map<String, Value> = it.values.iter().map(|(name, value)| (name.clone(), content(value))).collect();
    json!({
        "task": it.task.id, "state": it.task.state, "paused": it.paused, "awaits": it.awaits,
        "status": it.status.as_ref().map(content), "values": values,
    })
}

/// Returns an error with the name of its class in the Python client.
fn raised(error: &Error) -> Value {
    let class = if error.is_wait_timeout() {
        "WaitTimeout"
    } else if error.is_task_failure() {
        "TaskFailed"
    } else if error.is_unavailable() {
        "Unavailable"
    } else if error.is_not_found() {
        "NotFound"
    } else if error.is_conflict() {
        "Conflict"
    } else if error.is_invalid() {
        "Invalid"
    } else if error.is_denied() {
        "Denied"
    } else if error.is_overloaded() {
        "Overloaded"
    } else {
        "Problem"
    };
    let mut fields = json!({ "error": class, "text": error.to_string(), "task": error.task(), "state": error.state() });
    if let Some(problem) = error.problem() {
        fields["code"] = problem.code.clone().into();
        fields["remedy"] = problem.remedy.clone().into();
        fields["field"] = problem.field.clone().into();
        fields["status"] = problem.status.into();
        fields["request_id"] = problem.request_id.clone().into();
    }
    fields
}
