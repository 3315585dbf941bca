//! The steps of a file and their dependencies, as far as they can be read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::bounds::DEPENDENCIES_OF_STEP;
use super::errors::{Errors, Fault, shown};
use super::graph::Graph;
use super::model::{Condition, Dependency};
use super::source::Span;
use super::yaml::{Entry, Node, Value};
use crate::workflow::nearest::nearest;

/// The steps of a template, sorted by name, with their dependencies.
#[derive(Debug)]
pub(super) struct Outline<'n> {
    /// The steps; those without errors of their own are maps.
    pub(super) steps: Vec<&'n Entry>,
    pub(super) numbers: HashMap<&'n str, usize>,
    pub(super) dependencies: Vec<Vec<Dependency>>,
    /// The numbers of the steps that each step chooses among.
    pub(super) chooses: Vec<Vec<usize>>,
    /// The steps whose dependencies are not all known.
    pub(super) is_unclear: Vec<bool>,
}

impl<'n> Outline<'n> {
    /// Reads the steps of a template, and reports names that are unknown or duplicate.
    pub(super) fn read(root: &'n Node, unclear: &HashSet<Arc<str>>, errors: &mut Errors<'_>) -> Self {
        let mut steps: Vec<&Entry> = root.get("steps").map(Node::entries).unwrap_or_default().iter().collect();
        steps.sort_by(|a, b| a.key.cmp(&b.key));
        let numbers = steps.iter().enumerate().map(|(number, step)| (&*step.key, number)).collect();
        let is_unclear = steps.iter().map(|step| unclear.contains(&step.key)).collect();
        let (dependencies, chooses) = (vec![Vec::new(); steps.len()], vec![Vec::new(); steps.len()]);
        let mut outline = Self { steps, numbers, dependencies, chooses, is_unclear };
        let mut taken_by = vec![usize::MAX; outline.steps.len()];
        for step in 0..outline.steps.len() {
            outline.read_dependencies(step, &mut taken_by, errors);
        }
        outline.read_choices(errors);
        outline
    }

    /// Makes the graph, or reports its cycles.
    pub(super) fn graph(&self, errors: &mut Errors<'_>) -> Option<Graph> {
        let cycles = match Graph::new(&self.dependencies) {
            Ok(graph) => return Some(graph),
            Err(cycles) => cycles,
        };
        for cycle in cycles {
            let Some(&first) = cycle.first() else { continue };
            errors.add(self.span(first, "depends_on"), || self.cycle_fault(&cycle, first));
        }
        None
    }

    fn cycle_fault(&self, cycle: &[usize], first: usize) -> Fault {
        let names = cycle.iter().chain([&first]).map(|step| &*self.steps[*step].key);
        let path = names.collect::<Vec<_>>().join(" → ");
        Fault::new(format!("step `{}` depends on itself: {path}", self.steps[first].key))
    }

    /// Returns the place of a step's field, or of the step.
    pub(super) fn span(&self, step: usize, field: &str) -> Span {
        let step = self.steps[step];
        step.value.get(field).map_or(step.span, |value| value.span)
    }

    /// Reads `depends_on` of a step. `taken_by` has, for each step, the last one that depends on
    /// it.
    fn read_dependencies(&mut self, step: usize, taken_by: &mut [usize], errors: &mut Errors<'_>) {
        let entry = self.steps[step];
        for item in items(entry, "depends_on") {
            let Some((name, condition)) = dependency(item) else { continue };
            let Some(needed) = self.find(step, name, "depends on", item.span, errors) else { continue };
            if std::mem::replace(&mut taken_by[needed], step) == step {
                let (name, step) = (shown(name), shown(&entry.key));
                errors.add_message(item.span, format!("`{name}` stands twice in `depends_on` of step `{step}`"));
                continue;
            }
            self.dependencies[step].push(Dependency { step: needed, condition });
        }
        self.dependencies[step].sort_unstable();
    }

    /// Returns the number of another step that a step names.
    fn find(&mut self, step: usize, name: &str, verb: &str, span: Span, errors: &mut Errors<'_>) -> Option<usize> {
        let entry = self.steps[step];
        match self.numbers.get(name) {
            Some(&found) if found != step => return Some(found),
            Some(_) => errors.add_message(span, format!("step `{}` {verb} itself", shown(&entry.key))),
            None if errors.is_full() => errors.leave_out(),
            None => {
                let meant = nearest(name, self.steps.iter().map(|step| &*step.key));
                let message = || format!("step `{}` {verb} `{}`, which is no step", shown(&entry.key), shown(name));
                errors.add(span, || Fault::new(message()).mean(meant));
                // This step may choose the step that was meant, whose dependencies are then not all
                // known.
                meant
                    .and_then(|meant| self.numbers.get(meant))
                    .iter()
                    .for_each(|&&meant| self.is_unclear[meant] = true);
            }
        }
        self.is_unclear[step] = true;
        None
    }

    fn read_choices(&mut self, errors: &mut Errors<'_>) {
        let mut choosers: HashMap<usize, usize> = HashMap::new();
        for step in 0..self.steps.len() {
            let entry = self.steps[step];
            for item in items(entry, "chooses") {
                let Some(name) = item.as_text() else { continue };
                let Some(chosen) = self.find(step, name, "chooses", item.span, errors) else { continue };
                match choosers.insert(chosen, step) {
                    Some(first) => self.report_chosen_twice(step, first, name, item.span, errors),
                    None => self.choose(step, chosen, item.span, errors),
                }
            }
            self.chooses[step].sort_unstable();
        }
    }

    fn report_chosen_twice(&self, step: usize, first: usize, name: &str, span: Span, errors: &mut Errors<'_>) {
        let chooser = shown(&self.steps[step].key);
        let message = match first == step {
            true => format!("`{name}` stands twice in `chooses` of step `{chooser}`"),
            false => {
                format!("step `{name}` has two choosers, `{}` and `{chooser}`; it can have one", self.steps[first].key)
            }
        };
        errors.add_message(span, message);
    }

    /// Makes a step depend on the one that chooses it.
    fn choose(&mut self, step: usize, chosen: usize, span: Span, errors: &mut Errors<'_>) {
        self.chooses[step].push(chosen);
        let chosen_one = Dependency { step, condition: Condition::Chosen };
        let dependencies = &mut self.dependencies[chosen];
        match dependencies.iter_mut().find(|dependency| dependency.step == step) {
            None => dependencies.push(chosen_one),
            Some(dependency) if dependency.condition == Condition::Completed => *dependency = chosen_one,
            Some(_) => {
                let (name, chooser) = (shown(&self.steps[chosen].key), shown(&self.steps[step].key));
                let message = format!(
                    "`{chooser}` chooses step `{name}`, which depends on it with a condition; leave one of them out"
                );
                errors.add_message(span, message);
            }
        }
        dependencies.sort_unstable();
    }
}

/// Returns the items of a step's list; none of a list that is too long, which is reported already.
fn items<'n>(step: &'n Entry, field: &str) -> &'n [Node] {
    let items = step.value.get(field).map(Node::items).unwrap_or_default();
    if items.len() > DEPENDENCIES_OF_STEP { &[] } else { items }
}

/// Reads an item of `depends_on`.
pub(super) fn dependency(item: &Node) -> Option<(&str, Condition)> {
    match &item.value {
        Value::Text(name) => Some((name, Condition::Completed)),
        Value::Map(entries) => {
            let entry = entries.first()?;
            let condition = match entry.value.as_text()? {
                "failed" => Condition::Failed,
                "ended" => Condition::Ended,
                _ => return None,
            };
            Some((&entry.key, condition))
        }
        _ => None,
    }
}
