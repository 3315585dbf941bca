//! `onward orchestration status`

use onward_store::{InstanceRecord, Store, StoreReads, TaskRecord};
use serde_json::{Map, json};

use crate::commands::orchestration::selection::Orchestrations;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{add_instance_fields, kept_values, print_json, print_line, remark, written_value};
use crate::store_file;

/// Prints the status and the values of each of the orchestrations.
pub(crate) async fn run(options: &GlobalOptions, named: Orchestrations) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    named.for_each(options, &*store, async |record| show(options, &*store, &record).await).await
}

async fn show(options: &GlobalOptions, store: &dyn Store, record: &TaskRecord) -> anyhow::Result<()> {
    let instance: InstanceRecord = store.instance(record.id).await?.unwrap_or_default();
    if options.json {
        let mut object = Map::new();
        object.extend([("id".to_owned(), json!(record.id)), ("state".to_owned(), json!(record.state))]);
        add_instance_fields(&mut object, &instance);
        return Ok(print_json(&object)?);
    }
    if instance.hold.is_paused() {
        remark(format_args!("orchestration {} is paused", record.id));
    }
    match &instance.status {
        Some(status) => print_line(written_value(status))?,
        None if instance.hold.is_paused() || kept_values(&instance).next().is_some() => {}
        None => remark(format_args!("orchestration {} has set no status and no values", record.id)),
    }
    for (key, value) in kept_values(&instance) {
        print_line(format_args!("{key}={}", written_value(value)))?;
    }
    Ok(())
}
