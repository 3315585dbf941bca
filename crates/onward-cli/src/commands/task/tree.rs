//! `onward task tree`

use std::collections::VecDeque;

use onward_store::{Page, Refusal, Store, StoreReads, TaskFilter, TaskId, TaskRecord, bounds};

use super::numbers::Tasks;
use crate::apply::for_each;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{colored_state, print_json, print_line, remark, task_json};
use crate::store_file;

/// The largest number of tasks shown of one tree.
const SHOWN: usize = 10_000;

/// Shows each of the tasks with all its descendants.
pub(crate) async fn run(options: &GlobalOptions, tasks: Tasks) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let roots = tasks.numbers(&*store).await?;
    for_each(roots, options, async |root| show_tree(options, &*store, root).await).await
}

/// Shows a task with its descendants.
pub(crate) async fn show_tree(options: &GlobalOptions, store: &dyn Store, root: TaskId) -> anyhow::Result<()> {
    let tree = Tree::read(store, root).await?;
    for (depth, task) in tree.in_order() {
        if options.json {
            print_json(&task_json(task.clone())?)?;
        } else {
            let indent = "  ".repeat(depth);
            let what = if task.orchestration { " (orchestration)" } else { "" };
            print_line(format_args!("{indent}{} {} {}{what}", task.id, task.kind, colored_state(task.state)))?;
        }
    }
    if tree.is_cut {
        remark(format_args!("there are more: the first {SHOWN} tasks of the tree are shown"));
    }
    Ok(())
}

/// Returns a task in the form of a list entry, without payload and result, which is also the form
/// of its children.
async fn listed(store: &dyn Store, task: TaskId) -> anyhow::Result<TaskRecord> {
    let page = Page { before: Some(TaskId(task.0.saturating_add(1))), limit: 1 };
    let found = store.tasks(TaskFilter::default(), page).await?.tasks.pop();
    Ok(found.filter(|found| found.id == task).ok_or(Refusal::TaskNotFound(task))?)
}

/// A task and its descendants, each with the indices of its children.
struct Tree {
    tasks: Vec<(TaskRecord, Vec<usize>)>,
    is_cut: bool,
}

impl Tree {
    /// Reads the tree level by level, so that a tree that is too large is cut far from its root.
    async fn read(store: &dyn Store, root: TaskId) -> anyhow::Result<Self> {
        let mut tree = Self { tasks: vec![(listed(store, root).await?, Vec::new())], is_cut: false };
        let mut ahead = VecDeque::from([0]);
        while let Some(place) = ahead.pop_front() {
            for child in tree.children_of(store, place).await? {
                ahead.push_back(tree.tasks.len());
                let here = tree.tasks.len();
                tree.tasks[place].1.push(here);
                tree.tasks.push((child, Vec::new()));
            }
        }
        Ok(tree)
    }

    /// Returns the children of the task at an index, the oldest first, up to the limit of the tree.
    async fn children_of(&mut self, store: &dyn Store, place: usize) -> anyhow::Result<Vec<TaskRecord>> {
        let filter = TaskFilter { parent: Some(self.tasks[place].0.id), ..TaskFilter::default() };
        let (mut children, mut before) = (Vec::new(), None);
        while self.tasks.len() + children.len() < SHOWN {
            let page = store.tasks(filter.clone(), Page { before, limit: bounds::PAGE }).await?;
            children.extend(page.tasks);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        self.is_cut |= before.is_some() || self.tasks.len() + children.len() > SHOWN;
        children.truncate(SHOWN.saturating_sub(self.tasks.len()));
        children.reverse();
        Ok(children)
    }

    /// Returns the tasks with their depths, each before its children.
    fn in_order(&self) -> Vec<(usize, &TaskRecord)> {
        let (mut ordered, mut ahead) = (Vec::new(), vec![(0, 0)]);
        while let Some((depth, place)) = ahead.pop() {
            let (task, children) = &self.tasks[place];
            ordered.push((depth, task));
            ahead.extend(children.iter().rev().map(|child| (depth + 1, *child)));
        }
        ordered
    }
}
