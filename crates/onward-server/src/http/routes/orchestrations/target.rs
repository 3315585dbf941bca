//! The orchestration in the path of a request.

use onward_store::rules::orchestration::is_run;
use onward_store::{Refusal, TaskId};

use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::routes::tasks::record;

/// Returns the id of the orchestration in the path. A run of a workflow is none here: it has no
/// code, and a history of its own form.
pub(super) async fn orchestration(call: &Call) -> Result<TaskId, Problem> {
    let record = record(call).await?;
    if !record.orchestration || is_run(&record.kind) {
        return Err(Problem::from(&Refusal::NotAnOrchestration(record.id)));
    }
    Ok(record.id)
}
