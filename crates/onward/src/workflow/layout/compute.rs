//! The layout of a graph without cycles.

use serde::Serialize;

use super::coordinates::rows;
use super::layers::Layered;
use super::order::order;

/// A position in a drawing. The unit is the distance of two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Position {
    /// The column, from 0: the number of edges on the longest path to the node.
    pub x: f32,
    /// The row, from 0. Nodes of a column are at least 1 apart.
    pub y: f32,
}

/// The path of an edge.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EdgePath {
    /// The number of the node at which it begins.
    pub from: usize,
    /// The number of the node at which it ends.
    pub to: usize,
    /// The positions between the two nodes, one for each column that the edge crosses. Edges beyond
    /// [`GRAPH_WAYPOINTS`](crate::bounds::GRAPH_WAYPOINTS) positions in all have none.
    pub waypoints: Vec<Position>,
}

/// A layout.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Layout {
    /// The position of each node.
    pub nodes: Vec<Position>,
    /// The edges, by the node at which they end.
    pub edges: Vec<EdgePath>,
    /// The number of columns.
    pub columns: usize,
    /// The largest row, plus 1.
    pub rows: f32,
}

/// Returns the layout of the graph in which each node has these predecessors. An edge from a node
/// that does not exist is left out, and so is each edge of a cycle.
#[must_use]
pub fn layout(predecessors: &[Vec<usize>]) -> Layout {
    let mut layered = Layered::new(predecessors);
    order(&mut layered);
    let rows = rows(&layered);
    let at = |point: usize| Position { x: as_unit(layered.layer_of[point]), y: rows[point] };
    let edge = |edge: &super::layers::Edge| EdgePath {
        from: edge.from,
        to: edge.to,
        waypoints: edge.through.iter().map(|point| at(*point)).collect(),
    };
    let last = rows.iter().copied().fold(0.0, f32::max);
    Layout {
        nodes: (0..predecessors.len()).map(at).collect(),
        edges: layered.edges.iter().map(edge).collect(),
        columns: layered.layers.len(),
        rows: if rows.is_empty() { 0.0 } else { last + 1.0 },
    }
}

/// Returns a count as a distance. Counts are far below those that a float cannot hold.
#[expect(clippy::cast_precision_loss, reason = "a graph has far fewer than 16 million layers")]
pub(super) fn as_unit(count: usize) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(layout: &Layout, node: usize) -> (f32, f32) {
        (layout.nodes[node].x, layout.nodes[node].y)
    }

    #[test]
    fn a_chain_is_a_straight_line() {
        let layout = layout(&[vec![], vec![0], vec![1]]);
        assert_eq!([at(&layout, 0), at(&layout, 1), at(&layout, 2)], [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]);
        assert_eq!((layout.columns, layout.rows), (3, 1.0));
    }

    #[test]
    fn a_fork_has_its_node_in_the_middle() {
        let layout = layout(&[vec![], vec![0], vec![0], vec![0], vec![1, 2, 3]]);
        assert_eq!(at(&layout, 0).1, at(&layout, 2).1);
        assert_eq!(at(&layout, 4), (2.0, at(&layout, 2).1));
    }

    #[test]
    fn an_edge_over_a_column_has_a_position_there_beside_the_nodes() {
        let layout = layout(&[vec![], vec![0], vec![1, 0]]);
        let long = layout.edges.iter().find(|edge| (edge.from, edge.to) == (0, 2)).unwrap();
        let middle = long.waypoints[0];
        assert_eq!((long.waypoints.len(), middle.x), (1, 1.0));
        assert!((middle.y - at(&layout, 1).1).abs() >= 1.0, "{layout:?}");
    }

    #[test]
    fn two_ladders_are_drawn_without_a_crossing() {
        // In the order of their numbers the edges 0-3 and 1-2 cross.
        let layout = layout(&[vec![], vec![], vec![1], vec![0]]);
        let is_above = |one: usize, other: usize| at(&layout, one).1 < at(&layout, other).1;
        assert_eq!(is_above(0, 1), is_above(3, 2));
    }

    #[test]
    fn edges_that_are_none_are_left_out() {
        let layout = layout(&[vec![1, 7], vec![0], vec![0]]);
        assert_eq!(layout.nodes.len(), 3);
        assert!(layout.edges.iter().all(|edge| edge.from == 0 && edge.to == 2), "{layout:?}");
    }

    #[test]
    fn a_graph_of_nothing_is_empty() {
        assert_eq!(layout(&[]), Layout::default());
    }

    #[test]
    fn positions_of_long_edges_are_bounded() {
        let chain_with_roots = |node: usize| if node == 0 { vec![] } else { vec![node - 1, 0] };
        let graph: Vec<_> = (0..1000).map(chain_with_roots).collect();
        let layout = layout(&graph);
        let positions: usize = layout.edges.iter().map(|edge| edge.waypoints.len()).sum();
        assert!((1..=crate::bounds::GRAPH_WAYPOINTS).contains(&positions), "{positions}");
    }

    fn graphs() -> impl Strategy<Value = Vec<Vec<usize>>> {
        let nodes = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0..40);
        nodes.prop_map(|nodes| {
            let before = |(node, picks): (usize, Vec<prop::sample::Index>)| match node {
                0 => Vec::new(),
                node => picks.iter().map(|pick| pick.index(node)).collect(),
            };
            nodes.into_iter().enumerate().map(before).collect()
        })
    }

    proptest! {
        #[test]
        fn edges_go_right_and_nodes_keep_their_distance(graph in graphs()) {
            let layout = layout(&graph);
            for edge in &layout.edges {
                prop_assert!(layout.nodes[edge.from].x < layout.nodes[edge.to].x);
            }
            for (one, place) in layout.nodes.iter().enumerate() {
                prop_assert!(place.y >= 0.0 && place.y + 1.0 <= layout.rows + 0.001);
                for other in &layout.nodes[..one] {
                    let is_apart = place.x != other.x || (place.y - other.y).abs() >= 0.999;
                    prop_assert!(is_apart, "{:?}", layout);
                }
            }
        }
    }
}
