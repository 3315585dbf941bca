//! The settings of the shop before its first task: queues, limits, schedules and templates.

use std::time::Duration;

use onward::limits::{LimitScope, Rate, SetLimit};
use onward::queues::{Scope, SetQueue};
use onward::workflow::template::TemplateFile;
use onward::{Engine, Name, NewTask};
use serde_json::json;

use super::catalog::BUSY_TENANT;

/// The queue that is paused.
pub(super) const PAUSED_QUEUE: &str = "maintenance";

/// The templates of the shop's workflows.
const TEMPLATES: [(&str, &str); 2] =
    [("order.yaml", include_str!("order.yaml")), ("catalog.yaml", include_str!("catalog.yaml"))];

/// Sets everything.
pub(super) async fn set(engine: &Engine) -> anyhow::Result<()> {
    set_limits(engine).await?;
    set_schedules(engine).await?;
    for (file, text) in TEMPLATES {
        engine.put_template(&TemplateFile::read(file, text)?).await?;
    }
    Ok(())
}

async fn set_limits(engine: &Engine) -> anyhow::Result<()> {
    engine.set_queue(SetQueue::new(Name::new("images")?).concurrency(3)).await?;
    engine.set_queue(SetQueue::new(Name::new("mail")?).weight(4)).await?;
    engine.pause(Scope::Queue(Name::new(PAUSED_QUEUE)?)).await?;
    let second = Duration::from_secs(1);
    engine.set_limit(SetLimit::group(Name::new(BUSY_TENANT)?).concurrency(2)).await?;
    engine.set_limit(SetLimit::group(Name::new("acme")?).weight(3)).await?;
    let kind = |kind: &str| Ok::<_, anyhow::Error>(SetLimit::new(LimitScope::Kind(Name::new(kind)?)));
    engine.set_limit(kind("webhook.deliver")?.rate(Rate::new(3, second))).await?;
    engine.set_limit(kind("report.build")?.concurrency(2)).await?;
    Ok(())
}

async fn set_schedules(engine: &Engine) -> anyhow::Result<()> {
    let task = |kind: &str, payload: serde_json::Value| {
        Ok::<_, anyhow::Error>(NewTask { payload: payload.to_string().into(), ..NewTask::new(kind)? })
    };
    engine
        .schedule("rates")
        .every(Duration::from_secs(30))
        .task(task("rates.fetch", json!({ "base": "EUR" }))?)
        .await?;
    let backup = task("backup.write", json!({ "to": "s3://backups.example" }))?;
    engine.schedule("nightly-backup").cron("0 2 * * *", "Europe/Berlin").task(backup).await?;
    let digest = task("mail.send", json!({ "template": "digest", "to": "everyone" }))?;
    engine.schedule("weekly-digest").cron("30 8 * * MON", "America/New_York").task(digest).await?;
    let cleanup = task("uploads.sweep", json!({ "older_than": "30d" }))?;
    engine.schedule("sweep-uploads").cron("*/15 * * * *", "UTC").task(cleanup).await?;
    engine.pause_schedule(&Name::new("weekly-digest")?).await?;
    Ok(())
}
