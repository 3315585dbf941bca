//! The row of each point: near its neighbours, in the order of its layer.

use super::compute::as_unit;
use super::layers::Layered;

/// The number of passes over the layers.
const PASSES: usize = 6;

/// Returns the row of each point. The first is 0, and points of a layer are at least 1 apart.
pub(super) fn rows(graph: &Layered) -> Vec<f32> {
    let mut rows = vec![0.0; graph.layer_of.len()];
    for layer in &graph.layers {
        layer.iter().enumerate().for_each(|(place, point)| rows[*point] = as_unit(place));
    }
    for pass in 0..PASSES {
        let goes_right = pass % 2 == 0;
        for step in 0..graph.layers.len() {
            let layer = if goes_right { step } else { graph.layers.len() - 1 - step };
            let neighbours = if goes_right { &graph.before } else { &graph.behind };
            place(&graph.layers[layer], neighbours, &mut rows);
        }
    }
    let first = rows.iter().copied().fold(f32::INFINITY, f32::min);
    rows.iter_mut().for_each(|row| *row -= first);
    rows
}

/// Places the points of a layer as near to the middle of their neighbours as their distances allow.
fn place(layer: &[usize], neighbours: &[Vec<usize>], rows: &mut [f32]) {
    let wanted = |point: usize| {
        let near = &neighbours[point];
        let sum: f32 = near.iter().map(|other| rows[*other]).sum();
        if near.is_empty() { rows[point] } else { sum / as_unit(near.len()) }
    };
    let wanted: Vec<f32> = layer.iter().map(|point| wanted(*point)).collect();
    // A block is a run of points that touch; it lies where its points want to be on average. This
    // is the row of the first point, the sum of the wishes for that row, and the number of points.
    let mut blocks: Vec<(f32, f32, usize)> = Vec::new();
    for wish in wanted {
        let mut block = (wish, wish, 1);
        while let Some(above) = blocks.last().copied().filter(|above| above.0 + as_unit(above.2) > block.0) {
            blocks.pop();
            let wishes = above.1 + block.1 - as_unit(above.2 * block.2);
            let points = above.2 + block.2;
            block = (wishes / as_unit(points), wishes, points);
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|(first, _, points)| (0..*points).map(move |step| first + as_unit(step)));
    layer.iter().zip(places).for_each(|(point, row)| rows[*point] = row);
}
