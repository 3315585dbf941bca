//! Removing stored templates that nothing uses.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_store::{
    ExpectedVersion, Name, Page, StoreReads, TaskFilter, TaskId, Write, bounds as store_bounds, rules::orchestration,
};

use super::collections::{NAMES, TEMPLATES};
use super::record::{TemplateQuery, TemplateRecord};
use crate::engine::Engine;
use crate::error::Result;
use crate::workflow::template::TemplateHash;
use crate::workflow::turn::RunPayload;

impl Engine {
    /// Returns the stored templates that nothing uses: those that are not the newest of their name,
    /// that no run in the store pins, and that were put longer ago than `age`.
    ///
    /// It reads every run of the store.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn unused_templates(&self, age: Duration) -> Result<Vec<TemplateRecord>> {
        let before = self.store().clock().now().minus(age);
        let mut query = TemplateQuery { after: None, limit: store_bounds::PAGE };
        let mut unused = Vec::new();
        loop {
            let page = self.templates(query.clone()).await?;
            unused.extend(page.templates.into_iter().filter(|record| !record.is_newest && record.put_at <= before));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        if !unused.is_empty() {
            let pinned = self.pinned(None).await?;
            unused.retain(|record| !pinned.contains(&record.hash));
        }
        Ok(unused)
    }

    /// Removes the [unused templates](Self::unused_templates), and returns them. A program that
    /// added such a template from a file, and starts runs of it later, is then the only one that
    /// can continue these runs, until it is started again.
    ///
    /// # Errors
    /// If the store could not be read or written.
    pub async fn prune_templates(&self, age: Duration) -> Result<Vec<TemplateRecord>> {
        // Runs that are newer than this one are looked at again.
        let newest = self.newest_run().await?;
        let mut unused = self.unused_templates(age).await?;
        // Without its label no further run can pin a template. One may have done so until now.
        for record in &unused {
            self.apply(delete(NAMES, label_of(record))?).await?;
        }
        let pinned = self.pinned(newest).await?;
        for record in unused.extract_if(.., |record| pinned.contains(&record.hash)) {
            self.restore_label(&record).await?;
        }
        for record in &unused {
            self.apply(delete(TEMPLATES, record.hash.to_string())?).await?;
        }
        Ok(unused)
    }

    async fn restore_label(&self, record: &TemplateRecord) -> Result<()> {
        let document = super::put::named(label_of(record), record.hash)?;
        self.apply(Write::PutDocument(Box::new(document))).await.map(drop)
    }

    /// Returns the number of the newest run.
    async fn newest_run(&self) -> Result<Option<TaskId>> {
        let filter = TaskFilter { orchestration: Some(true), ..TaskFilter::default() };
        let found = self.store().tasks(filter, Page { before: None, limit: 1 }).await?;
        Ok(found.tasks.first().map(|task| task.id))
    }

    /// Returns the templates that runs pin, of all runs or of those that are newer than one.
    async fn pinned(&self, newer_than: Option<TaskId>) -> Result<BTreeSet<TemplateHash>> {
        let filter = TaskFilter { orchestration: Some(true), ..TaskFilter::default() };
        let mut page = Page { before: None, limit: store_bounds::PAGE };
        let mut pinned = BTreeSet::new();
        loop {
            let found = self.store().tasks(filter.clone(), page).await?;
            for task in found.tasks.iter().filter(|task| orchestration::is_run(&task.kind)) {
                if newer_than.is_some_and(|newest| task.id <= newest) {
                    return Ok(pinned);
                }
                // A list has no payloads.
                let Some(record) = self.store().task(task.id).await? else { continue };
                if let Ok(payload) = RunPayload::read(record.payload.as_deref().unwrap_or_default()) {
                    pinned.insert(payload.template);
                    pinned.extend(payload.workflows.into_values());
                }
            }
            page.before = found.next;
            if page.before.is_none() {
                return Ok(pinned);
            }
        }
    }
}

fn label_of(record: &TemplateRecord) -> String {
    format!("{}@{}", record.name, record.label)
}

fn delete(collection: &str, key: String) -> Result<Write> {
    Ok(Write::DeleteDocument { collection: Name::new(collection)?, key, expect: ExpectedVersion::Any })
}
