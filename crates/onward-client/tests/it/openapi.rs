//! The types have no field that the OpenAPI document does not know.

use onward_client::{
    Attempt, Content, CriticalPath, CriticalStep, DurationText, Event, Limit, LimitChange, NewTask, OnDuplicate,
    Orchestration, Progress, Queue, Rate, Reason, Schedule, SlackStep, StartRun, Step, Submitted, Task, Template, Why,
};
use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// A deserializer that returns the fields of a struct as its error.
struct Fields;

impl<'de> Deserializer<'de> for Fields {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom(fields.join(" ")))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn read_fields<T: for<'de> Deserialize<'de>>() -> Vec<String> {
    let error = T::deserialize(Fields).err().expect("the deserializer returns an error");
    error.to_string().split(' ').map(str::to_owned).collect()
}

fn written_fields(value: impl serde::Serialize) -> Vec<String> {
    serde_json::to_value(value).unwrap().as_object().unwrap().keys().cloned().collect()
}

fn properties(schema: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(include_str!("../../../../docs/reference/openapi.json")).unwrap();
    let properties = &document["components"]["schemas"][schema]["properties"];
    properties.as_object().unwrap_or_else(|| panic!("no schema {schema}")).keys().cloned().collect()
}

fn check(schema: &str, fields: Vec<String>) {
    let known = properties(schema);
    let unknown: Vec<_> = fields.iter().filter(|field| !known.contains(field)).collect();
    assert!(unknown.is_empty(), "{schema} has no {unknown:?}; it has {known:?}");
}

#[test]
fn responses_have_the_fields_of_the_document() {
    check("TaskBody", read_fields::<Task>());
    check("ProgressBody", read_fields::<Progress>());
    check("AttemptBody", read_fields::<Attempt>());
    check("WhyBody", read_fields::<Why>());
    check("ReasonBody", read_fields::<Reason>());
    check("Content", read_fields::<Content>());
    check("SubmittedBody", read_fields::<Submitted>());
    check("EventBody", read_fields::<Event>());
    check("RunBody", read_fields::<onward_client::Run>());
    check("StepBody", read_fields::<Step>());
    check("CriticalPathBody", read_fields::<CriticalPath>());
    check("CriticalStepBody", read_fields::<CriticalStep>());
    check("SlackStepBody", read_fields::<SlackStep>());
    check("TemplateBody", read_fields::<Template>());
    check("OrchestrationBody", read_fields::<Orchestration>());
    check("QueueBody", read_fields::<Queue>());
    check("LimitBody", read_fields::<Limit>());
    check("RateBody", read_fields::<Rate>());
    check("ScheduleBody", read_fields::<Schedule>());
}

#[test]
fn requests_have_the_fields_of_the_document() {
    let time = std::time::Duration::from_secs(1);
    let policy = onward_client::RetryPolicy {
        attempts: 1,
        backoff: onward_client::Backoff::Constant { delay: DurationText(time) },
    };
    let task = NewTask::new("k").queue("q").priority(1).key("k").on_duplicate(OnDuplicate::Skip).keep_key_for(time);
    let task = task.ttl(time).timeout(time).heartbeat_timeout(time).deadline("d").retention(time).retry(policy);
    let task = task.group("g").tag("a", "b").depends_on("1").parent("1").affinity("a").idempotency_key("i");
    check("NewTaskBody", written_fields(task.clone().after(time).json(&1).unwrap()));
    check("NewTaskBody", written_fields(task.at("t").bytes(b"x")));
    check("StartRunBody", written_fields(StartRun::new("t").input(&1).unwrap().environment("e").key("k")));
    check("LimitChange", written_fields(LimitChange::default()));
}
