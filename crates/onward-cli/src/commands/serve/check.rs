//! `onward serve --check`

use std::sync::Arc;

use onward_store::{Store, SystemClock};
use serde_json::json;

use super::arguments::Settings;
use super::prepare::{check_protection, open_tls};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Checks everything that a start needs, and starts nothing.
pub(super) async fn check(options: &GlobalOptions, settings: &Settings) -> anyhow::Result<ExitCode> {
    settings.options()?.check()?;
    let tls = open_tls(settings, Arc::new(SystemClock))?;
    let store = existing(options).await?;
    check_protection(settings, store.as_ref()).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listening = format!("{scheme}://{}{}", settings.listen, settings.base_path);
    if options.json {
        print_json(&json!({ "ready": true, "listening": listening, "store_exists": store.is_some() }))?;
        return Ok(ExitCode::Done);
    }
    print_line(format_args!("ready to listen on {listening}"))?;
    if store.is_none() {
        print_line(format_args!("the store {} does not exist; the server creates it", options.store))?;
    }
    Ok(ExitCode::Done)
}

/// Opens the store to read. Returns `None` for one that the start would create.
async fn existing(options: &GlobalOptions) -> anyhow::Result<Option<Arc<dyn Store>>> {
    match store_file::open_to_read(options).await {
        Ok(store) => Ok(Some(store)),
        Err(error) if error.downcast_ref::<onward_store::Error>().is_some_and(onward_store::Error::is_not_found) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
