//! The checks that need the whole template.

use super::errors::{Errors, Fault, shown};
use super::expressions::{Reference, Root};
use super::graph::Graph;
use super::model::Condition;
use super::outline::{Outline, dependency};
use super::shape::{Scope, Use};
use super::yaml::{Node, written};
use crate::workflow::nearest::nearest;

/// The checks of the references between the steps of a template.
pub(super) struct Checks<'a, 'n> {
    pub(super) root: &'n Node,
    pub(super) outline: &'a Outline<'n>,
    /// The graph; `None` if it has cycles.
    pub(super) graph: Option<&'a Graph>,
}

impl Checks<'_, '_> {
    /// Reports names that expressions cannot use, signals of one name and an undo of nothing.
    pub(super) fn check(&self, uses: &[Use], errors: &mut Errors<'_>) {
        for used in uses {
            used.names.iter().for_each(|name| self.name(used, name, errors));
        }
        self.signals(errors);
        self.undo(errors);
    }

    fn name(&self, used: &Use, name: &Reference, errors: &mut Errors<'_>) {
        // A fault contains the nearest known names, which take long to find.
        if errors.is_full() {
            return;
        }
        let fault = match (name.root, &name.step) {
            (Root::Steps, Some(step)) => self.step_fault(used, step),
            (Root::Item | Root::Index, _) => item_fault(used),
            (Root::Input, _) => None,
            (Root::Vars | Root::Run | Root::Steps, _) => key_fault(used),
        };
        if let Some(fault) = fault {
            errors.add_at(|source| source.within(used.span, &used.text, name.span.clone()), || fault);
        }
    }

    /// Returns the error of an expression that names a step, if it cannot.
    fn step_fault(&self, used: &Use, name: &str) -> Option<Fault> {
        let Some(&named) = self.outline.numbers.get(name) else {
            let user = user(used);
            let fault = Fault::new(format!("{user} uses steps.{}, which is no step", shown(name)));
            return Some(fault.mean(nearest(name, self.outline.steps.iter().map(|step| &*step.key))));
        };
        match &used.scope {
            Scope::Key => key_fault(used),
            Scope::Start => {
                let message = format!("`{}` is evaluated when the run starts, so it cannot use steps", used.field);
                Some(Fault::new(message))
            }
            Scope::Result | Scope::Undo { .. } => None,
            Scope::Step { step, .. } => self.ancestor_fault(step, named, false),
            Scope::Published { step } => self.ancestor_fault(step, named, true),
        }
    }

    fn ancestor_fault(&self, step: &str, named: usize, has_ended: bool) -> Option<Fault> {
        let user = *self.outline.numbers.get(step)?;
        let graph = self.graph?;
        let is_itself = user == named;
        if graph.is_ancestor(named, user) || is_itself && has_ended || self.is_unclear(user, graph) {
            return None;
        }
        let name = &self.outline.steps[named].key;
        if is_itself {
            return Some(Fault::new(format!("step `{name}` uses its own result, which is not there before it ends")));
        }
        let fault = Fault::new(format!("step `{}` uses steps.{name}, which it does not depend on", shown(step)));
        if graph.is_ancestor(user, named) {
            return Some(fault.and(&format!("; `{name}` comes after it")));
        }
        let correction = format!("depends_on: [{}]", self.dependencies_with(user, name));
        Some(fault.offer(correction, |correction| format!("add `{correction}`")))
    }

    /// Returns true if a step may have ancestors that are not known.
    fn is_unclear(&self, step: usize, graph: &Graph) -> bool {
        let is_unclear = &self.outline.is_unclear;
        is_unclear[step] || graph.ancestors(step).any(|ancestor| is_unclear[ancestor])
    }

    /// Writes the dependencies of a step with a further one.
    fn dependencies_with(&self, step: usize, further: &str) -> String {
        let items = self.outline.steps[step].value.get("depends_on").map(Node::items).unwrap_or_default();
        let written = items.iter().filter_map(dependency).map(|(name, condition)| match condition {
            Condition::Failed => format!("{{{}: failed}}", written(name)),
            Condition::Ended => format!("{{{}: ended}}", written(name)),
            Condition::Completed | Condition::Chosen => written(name),
        });
        written.chain([further.to_owned()]).collect::<Vec<_>>().join(", ")
    }

    /// Reports signals of one name in steps of which neither comes after the other.
    fn signals(&self, errors: &mut Errors<'_>) {
        let Some(graph) = self.graph else { return };
        let signal = |step: &usize| self.outline.steps[*step].value.get("signal").and_then(Node::as_text);
        let mut steps: Vec<usize> = (0..self.outline.steps.len()).filter(|step| signal(step).is_some()).collect();
        // Sorted by name, then in the order of the graph: comparing neighbours is enough.
        let mut place = vec![0; self.outline.steps.len()];
        graph.order().iter().enumerate().for_each(|(at, step)| place[*step] = at);
        steps.sort_by_key(|step| (signal(step), place[*step]));
        for pair in steps.windows(2) {
            let [first, second] = [pair[0], pair[1]];
            let is_same = signal(&first) == signal(&second);
            if is_same && !graph.is_ancestor(first, second) && !self.is_unclear(second, graph) {
                errors.add(self.outline.span(second, "signal"), || self.signal_fault(first, second));
            }
        }
    }

    fn signal_fault(&self, first: usize, second: usize) -> Fault {
        let [first, second] = [first, second].map(|step| &*self.outline.steps[step].key);
        Fault::new(format!(
            "steps `{first}` and `{second}` wait for one signal and may do so at once; \
             let one depend on the other, or give them two names"
        ))
    }

    /// Reports `on_failure: undo` where nothing can be undone.
    fn undo(&self, errors: &mut Errors<'_>) {
        let Some(policy) = self.root.get("on_failure").filter(|policy| policy.as_text() == Some("undo")) else {
            return;
        };
        // A workflow without an undo of its own is undone as its template says.
        let can_undo = |step: &Node| step.get("undo").is_some() || step.get("workflow").is_some();
        if !self.outline.steps.iter().any(|step| can_undo(&step.value)) {
            errors.add_message(policy.span, "`on_failure: undo` has no effect, because no step has an `undo`");
        }
    }
}

fn key_fault(used: &Use) -> Option<Fault> {
    let is_key = used.scope == Scope::Key;
    is_key.then(|| Fault::new("the key of a run is known before it starts, so it can use `input` alone"))
}

fn item_fault(used: &Use) -> Option<Fault> {
    let has_items = match used.scope {
        Scope::Step { has_items, .. } | Scope::Undo { has_items } => has_items,
        _ => false,
    };
    let message = "`item` and `index` stand only in `with`, `env` and `key` of a step that has `each`";
    (!has_items).then(|| Fault::new(message))
}

fn user(used: &Use) -> String {
    match &used.scope {
        Scope::Step { step, .. } | Scope::Published { step } => format!("step `{}`", shown(step)),
        Scope::Key | Scope::Start | Scope::Result | Scope::Undo { .. } => format!("`{}`", used.field),
    }
}
