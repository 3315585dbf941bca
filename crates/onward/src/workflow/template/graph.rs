//! The order of the steps.

use std::collections::VecDeque;

use super::bits::BitSets;
use super::model::{Condition, Dependency};

/// The order of a template's steps, which are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    dependents: Vec<Vec<usize>>,
    order: Vec<usize>,
    ancestors: BitSets,
    longest_below: Vec<u32>,
    on_failure_path: Vec<bool>,
}

impl Graph {
    /// Makes the graph of steps with these dependencies.
    ///
    /// # Errors
    /// The cycles that were found, each as the numbers of its steps: each step depends on the next,
    /// and the last on the first.
    pub(super) fn new(dependencies: &[Vec<Dependency>]) -> Result<Self, Vec<Vec<usize>>> {
        let dependents = dependents(dependencies);
        let order = topological(dependencies, &dependents);
        if order.len() < dependencies.len() {
            return Err(cycles(dependencies, &order));
        }
        let ancestors = ancestors(dependencies, &order);
        let longest_below = longest_below(&dependents, &order);
        let on_failure_path = on_failure_path(dependencies, &order);
        Ok(Self { dependents, order, ancestors, longest_below, on_failure_path })
    }

    /// Returns the steps in an order in which each comes after all that it depends on.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the steps that depend on a step directly.
    #[must_use]
    pub fn dependents(&self, step: usize) -> &[usize] {
        self.dependents.get(step).map_or(&[], Vec::as_slice)
    }

    /// Returns true if `step` depends on `other`, directly or through others.
    #[must_use]
    pub fn is_ancestor(&self, other: usize, step: usize) -> bool {
        self.ancestors.contains(step, other)
    }

    /// Returns all steps that a step depends on, directly or through others, in order of their
    /// numbers.
    pub fn ancestors(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        self.ancestors.of(step)
    }

    /// Returns the number of steps on the longest path that begins behind a step.
    #[must_use]
    pub fn longest_below(&self, step: usize) -> u32 {
        self.longest_below.get(step).copied().unwrap_or_default()
    }

    /// Returns true if a step has a condition `failed` or `ended`, or depends on one that has.
    #[must_use]
    pub fn is_on_failure_path(&self, step: usize) -> bool {
        self.on_failure_path.get(step).copied().unwrap_or_default()
    }

    /// Returns the steps that no other depends on.
    pub fn last(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.dependents.len()).filter(|step| self.dependents(*step).is_empty())
    }
}

fn dependents(dependencies: &[Vec<Dependency>]) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); dependencies.len()];
    for (step, needed) in dependencies.iter().enumerate() {
        for dependency in needed {
            dependents[dependency.step].push(step);
        }
    }
    dependents
}

/// Returns the steps that do not depend on a cycle, each after all that it depends on.
fn topological(dependencies: &[Vec<Dependency>], dependents: &[Vec<usize>]) -> Vec<usize> {
    let mut open: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut ready: VecDeque<usize> = (0..open.len()).filter(|step| open[*step] == 0).collect();
    let mut order = Vec::with_capacity(open.len());
    while let Some(step) = ready.pop_front() {
        order.push(step);
        for &dependent in &dependents[step] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                ready.push_back(dependent);
            }
        }
    }
    order
}

/// Finds cycles among the steps that are not in `order`.
///
/// Each of them depends on another one of them, so a walk along such dependencies comes to a step
/// for the second time: that is a cycle. A walk that comes to a step of an earlier one ends there,
/// so all walks together are as long as there are steps.
fn cycles(dependencies: &[Vec<Dependency>], order: &[usize]) -> Vec<Vec<usize>> {
    let mut is_left = vec![true; dependencies.len()];
    order.iter().for_each(|step| is_left[*step] = false);
    let mut walk_of = vec![usize::MAX; dependencies.len()];
    let mut cycles = Vec::new();
    for start in (0..dependencies.len()).filter(|step| is_left[*step]) {
        let mut path = Vec::new();
        let mut step = start;
        while walk_of[step] == usize::MAX {
            walk_of[step] = start;
            path.push(step);
            let next = dependencies[step].iter().find(|dependency| is_left[dependency.step]);
            step = next.map_or(step, |dependency| dependency.step);
        }
        if walk_of[step] == start {
            cycles.extend(path.iter().position(|passed| *passed == step).map(|first| path.split_off(first)));
        }
    }
    cycles
}

fn ancestors(dependencies: &[Vec<Dependency>], order: &[usize]) -> BitSets {
    let mut ancestors = BitSets::new(dependencies.len());
    for &step in order {
        // Starts at the last dependency, because it often has most of the others as ancestors.
        for dependency in dependencies[step].iter().rev() {
            // A step that is an ancestor already brought its own ancestors with it.
            if !ancestors.contains(step, dependency.step) {
                ancestors.add_with_its_own(step, dependency.step);
            }
        }
    }
    ancestors
}

fn longest_below(dependents: &[Vec<usize>], order: &[usize]) -> Vec<u32> {
    let mut longest = vec![0; dependents.len()];
    for &step in order.iter().rev() {
        longest[step] = dependents[step].iter().map(|dependent| longest[*dependent] + 1).max().unwrap_or(0);
    }
    longest
}

fn on_failure_path(dependencies: &[Vec<Dependency>], order: &[usize]) -> Vec<bool> {
    let mut is_on = vec![false; dependencies.len()];
    for &step in order {
        is_on[step] = dependencies[step].iter().any(|dependency| {
            matches!(dependency.condition, Condition::Failed | Condition::Ended) || is_on[dependency.step]
        });
    }
    is_on
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[usize]]) -> Result<Graph, Vec<Vec<usize>>> {
        let condition = Condition::Completed;
        let of = |steps: &&[usize]| steps.iter().map(|step| Dependency { step: *step, condition }).collect();
        Graph::new(&edges.iter().map(of).collect::<Vec<_>>())
    }

    #[test]
    fn ancestors_are_all_steps_before_one() {
        let graph = graph(&[&[], &[0], &[0], &[1, 2], &[]]).unwrap();
        assert_eq!(graph.ancestors(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(graph.is_ancestor(0, 3) && !graph.is_ancestor(3, 0) && !graph.is_ancestor(4, 3));
        assert_eq!(graph.last().collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn the_longest_path_behind_a_step_is_counted() {
        let graph = graph(&[&[], &[0], &[1], &[0]]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|step| graph.longest_below(step)), [2, 1, 0, 0]);
    }

    #[test]
    fn a_cycle_is_named_in_full() {
        assert_eq!(graph(&[&[1], &[2], &[0], &[0]]).unwrap_err(), [vec![0, 1, 2]]);
        assert_eq!(graph(&[&[], &[2], &[1], &[4], &[3]]).unwrap_err(), [vec![1, 2], vec![3, 4]]);
        assert_eq!(graph(&[&[0]]).unwrap_err(), [vec![0]]);
    }

    #[test]
    fn a_step_behind_a_condition_for_bad_ends_is_on_a_failure_path() {
        let on = |step, condition| Dependency { step, condition };
        let failed = vec![on(0, Condition::Failed)];
        let graph =
            Graph::new(&[vec![], failed, vec![on(1, Condition::Completed)], vec![on(0, Condition::Chosen)]]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|step| graph.is_on_failure_path(step)), [false, true, true, false]);
    }
}
