//! Folding of paths into single nodes, for graphs with more nodes than a reader wants to see.

/// Returns the nodes in groups: a longest path of nodes that `folds` selects is one group, in the
/// order of the path, and each other node is a group of its own. Within a path each node has the
/// next one as its only successor, and that one no other predecessor.
///
/// The graph has no cycles. A predecessor that does not exist is ignored. The groups are ordered by
/// their first node.
///
/// ```
/// use onward::workflow::layout::fold;
///
/// // 0 → 1 → 2 → 3, of which the first three are done.
/// let groups = fold(&[vec![], vec![0], vec![1], vec![2]], |node| node < 3);
/// assert_eq!(groups, [vec![0, 1, 2], vec![3]]);
/// ```
#[must_use]
pub fn fold(predecessors: &[Vec<usize>], folds: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let next = only_successors(predecessors, &folds);
    let mut has_previous = vec![false; predecessors.len()];
    for after in next.iter().flatten() {
        has_previous[*after] = true;
    }
    let path = |first: usize| std::iter::successors(Some(first), |node| next[*node]).collect();
    (0..predecessors.len()).filter(|node| !has_previous[*node]).map(path).collect()
}

/// Returns for each node the one that continues its path.
fn only_successors(predecessors: &[Vec<usize>], folds: &impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut successors = vec![Vec::new(); predecessors.len()];
    for (node, before) in predecessors.iter().enumerate() {
        for one in before {
            if let Some(after) = successors.get_mut(*one) {
                after.push(node);
            }
        }
    }
    let continues = |(node, after): (usize, Vec<usize>)| match after.as_slice() {
        [one] if folds(node) && folds(*one) && predecessors[*one].len() == 1 => Some(*one),
        _ => None,
    };
    successors.into_iter().enumerate().map(continues).collect()
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn a_path_ends_where_the_graph_branches_or_joins() {
        // 0 → 1 → {2, 3}, {2, 3} → 4 → 5
        let graph = [vec![], vec![0], vec![1], vec![1], vec![2, 3], vec![4]];
        assert_eq!(fold(&graph, |_| true), [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    }

    #[test]
    fn a_node_that_is_not_selected_stays_alone() {
        let graph = [vec![], vec![0], vec![1], vec![2], vec![3]];
        assert_eq!(fold(&graph, |node| node != 2), [vec![0, 1], vec![2], vec![3, 4]]);
    }

    #[test]
    fn every_node_is_in_one_group() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let graph: Vec<Vec<usize>> = (0..random.usize(1..60))
                .map(|node| {
                    (0..random.usize(0..3)).map(|_| random.usize(0..=node)).filter(|one| *one != node).collect()
                })
                .collect();
            let mut nodes = fold(&graph, |node| node % 5 != 0).concat();
            nodes.sort_unstable();
            assert_eq!(nodes, (0..graph.len()).collect::<Vec<_>>(), "{graph:?}");
        }
    }
}
