//! The overview of an engine for a dashboard.

use onward::Name;
use onward::limits::{LimitScope, SetLimit};
use onward::queues::Scope;

use crate::fixture::{Gate, HOUR, TestStore, start, stop, submit};

on_every_store! {
    an_overview_shows_queues_limits_pauses_sessions_schedules_and_what_runs,
    an_overview_can_be_written_as_json,
}

/// Shows: T19
async fn an_overview_shows_queues_limits_pauses_sessions_schedules_and_what_runs(store: TestStore) {
    let (engine, gate) = (store.builder().name("here").open().await.unwrap(), Gate::new());
    engine.handle("hold", gate.handler());
    engine.set_limit(SetLimit::new(LimitScope::Kind(Name::new("hold").unwrap())).concurrency(5)).await.unwrap();
    engine.pause(Scope::Kind(Name::new("other").unwrap())).await.unwrap();
    engine.schedule("hourly").every(HOUR).task(onward::NewTask::new("hold").unwrap()).await.unwrap();
    let id = submit(&engine, "hold").await;
    submit(&engine, "other").await;
    let run = start(&engine);
    gate.entered(1).await;
    let overview = engine.overview().await.unwrap();
    assert_eq!((overview.queues[0].running, overview.queues[0].waiting), (1, 1));
    assert_eq!(overview.limits[0].running, Some(1));
    assert_eq!(overview.pauses.len(), 1);
    assert_eq!((overview.sessions[0].name.as_str(), overview.sessions[0].running), ("here", 1));
    assert_eq!(overview.schedules.len(), 1);
    assert_eq!(overview.engine.unwrap().running[0].id, id);
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T19
async fn an_overview_can_be_written_as_json(store: TestStore) {
    let engine = store.engine().await;
    submit(&engine, "any").await;
    let json = serde_json::to_value(engine.overview().await.unwrap()).unwrap();
    assert_eq!(json["queues"][0]["waiting"], 1);
    assert_eq!(json["engine"]["is_running"], false);
}
