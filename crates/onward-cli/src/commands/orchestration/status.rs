//! `onward orchestration status`

use onward_store::InstanceRecord;
use serde_json::{Map, json};

use super::named::Orchestrations;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{instance_said, kept_values, print_json, print_line, remark, written_value};
use crate::store_file;

/// Prints what each of the orchestrations says of itself.
pub(crate) async fn run(options: &GlobalOptions, named: Orchestrations) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    for record in named.records(&*store).await? {
        let instance: InstanceRecord = store.instance(record.id).await?.unwrap_or_default();
        if options.json {
            let mut object = Map::new();
            object.extend([("id".to_owned(), json!(record.id)), ("state".to_owned(), json!(record.state))]);
            instance_said(&mut object, &instance);
            print_json(&object)?;
            continue;
        }
        if instance.hold.is_paused() {
            remark(format_args!("orchestration {} is paused", record.id));
        }
        match &instance.status {
            Some(status) => print_line(written_value(status))?,
            None if instance.hold.is_paused() || kept_values(&instance).next().is_some() => {}
            None => remark(format_args!("orchestration {} says nothing of itself", record.id)),
        }
        for (key, value) in kept_values(&instance) {
            print_line(format_args!("{key}={}", written_value(value)))?;
        }
    }
    Ok(ExitCode::Done)
}
