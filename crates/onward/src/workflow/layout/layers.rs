//! The layers of a graph: each node is one behind the last of its predecessors.

use std::collections::BTreeSet;

use crate::bounds;

/// An edge between two nodes.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The points in the layers between.
    pub(super) through: Vec<usize>,
}

/// A graph in layers. A point is a node, or the place of an edge in a layer that it crosses; the
/// nodes come first.
#[derive(Debug)]
pub(super) struct Layered {
    pub(super) edges: Vec<Edge>,
    /// The points of each layer, in their order.
    pub(super) layers: Vec<Vec<usize>>,
    /// The layer of each point.
    pub(super) layer_of: Vec<usize>,
    /// The points of the layer before to which each point is joined.
    pub(super) before: Vec<Vec<usize>>,
    /// The points of the layer behind to which each point is joined.
    pub(super) behind: Vec<Vec<usize>>,
}

impl Layered {
    pub(super) fn new(predecessors: &[Vec<usize>]) -> Self {
        let (layer_of, is_placed) = longest_paths(predecessors);
        let edge = |(to, before): (usize, &Vec<usize>)| {
            let unique: BTreeSet<usize> = before.iter().copied().collect();
            unique.into_iter().map(move |from| Edge { from, to, through: Vec::new() }).collect::<Vec<_>>()
        };
        let edges = predecessors.iter().enumerate().flat_map(edge);
        let is_edge = |edge: &Edge| is_placed.get(edge.from) == Some(&true) && is_placed[edge.to];
        let edges = edges.filter(is_edge).collect();
        let mut graph = Self { edges, layers: Vec::new(), layer_of, before: Vec::new(), behind: Vec::new() };
        graph.add_waypoints();
        graph.join();
        graph
    }

    /// Adds a point in each layer that an edge crosses, to the shortest edges first.
    fn add_waypoints(&mut self) {
        let span = |edge: &Edge| self.layer_of[edge.to] - self.layer_of[edge.from];
        let mut shortest: Vec<(usize, usize)> =
            self.edges.iter().enumerate().map(|(number, edge)| (span(edge), number)).collect();
        shortest.sort_unstable();
        let mut left = bounds::GRAPH_WAYPOINTS;
        for (span, number) in shortest {
            let crossed = span - 1;
            if crossed > left {
                break;
            }
            left -= crossed;
            let first = self.layer_of.len();
            let layer = self.layer_of[self.edges[number].from];
            self.layer_of.extend((1..span).map(|step| layer + step));
            self.edges[number].through = (first..first + crossed).collect();
        }
    }

    /// Joins the points along the edges, and puts them in their layers.
    fn join(&mut self) {
        let points = self.layer_of.len();
        (self.before, self.behind) = (vec![Vec::new(); points], vec![Vec::new(); points]);
        for edge in &self.edges {
            // An edge whose waypoints were beyond the bound joins nothing, so that the passes over
            // neighbours stay within a layer.
            let mut at = edge.from;
            for next in edge.through.iter().copied().chain([edge.to]) {
                if self.layer_of[next] == self.layer_of[at] + 1 {
                    self.behind[at].push(next);
                    self.before[next].push(at);
                }
                at = next;
            }
        }
        let count = self.layer_of.iter().max().map_or(0, |last| last + 1);
        self.layers = vec![Vec::new(); count];
        self.layer_of.iter().enumerate().for_each(|(point, layer)| self.layers[*layer].push(point));
    }
}

/// Returns the number of edges on the longest path to each node, and which nodes were reached:
/// those on a cycle, and behind one, are not.
fn longest_paths(predecessors: &[Vec<usize>]) -> (Vec<usize>, Vec<bool>) {
    let count = predecessors.len();
    let (mut layer, mut is_placed, mut successors) = (vec![0; count], vec![false; count], vec![Vec::new(); count]);
    let mut missing = vec![0; count];
    for (node, before) in predecessors.iter().enumerate() {
        for other in before.iter().copied().filter(|other| *other < count) {
            successors[other].push(node);
            missing[node] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..count).filter(|node| missing[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        is_placed[node] = true;
        for next in successors[node].iter().copied() {
            layer[next] = layer[next].max(layer[node] + 1);
            missing[next] -= 1;
            if missing[next] == 0 {
                ready.push(next);
            }
        }
    }
    // A node that was not reached may have the layer of a predecessor; it is drawn without edges.
    layer.iter_mut().zip(&is_placed).filter(|(_, is_placed)| !**is_placed).for_each(|(layer, _)| *layer = 0);
    (layer, is_placed)
}
