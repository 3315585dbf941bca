//! The order of the points of each layer: by the median of their neighbours.

use super::layers::Layered;

/// The number of passes over the layers. More passes change little.
const PASSES: usize = 8;

/// Puts the points of each layer in an order with few crossings.
pub(super) fn order(graph: &mut Layered) {
    let mut place = vec![0; graph.layer_of.len()];
    graph.layers.iter().for_each(|layer| note(&mut place, layer));
    let (mut best, mut fewest) = (graph.layers.clone(), crossings(graph, &place));
    for pass in 0..PASSES {
        if fewest == 0 {
            break;
        }
        let goes_right = pass % 2 == 0;
        for step in 0..graph.layers.len() {
            let layer = if goes_right { step } else { graph.layers.len() - 1 - step };
            let neighbours = if goes_right { &graph.before } else { &graph.behind };
            // The sort is stable, so points without a median keep their order among others.
            let by_median = |point: &usize| median(&neighbours[*point], &place).unwrap_or(2 * place[*point]);
            graph.layers[layer].sort_by_key(by_median);
            note(&mut place, &graph.layers[layer]);
        }
        let now = crossings(graph, &place);
        if now < fewest {
            (best, fewest) = (graph.layers.clone(), now);
        }
    }
    graph.layers = best;
}

fn note(place: &mut [usize], layer: &[usize]) {
    layer.iter().enumerate().for_each(|(at, point)| place[*point] = at);
}

/// Returns twice the median of the places of points.
fn median(points: &[usize], place: &[usize]) -> Option<usize> {
    let mut places: Vec<usize> = points.iter().map(|point| place[*point]).collect();
    places.sort_unstable();
    let middle = places.len() / 2;
    match places.len() {
        0 => None,
        count if count % 2 == 1 => Some(2 * places[middle]),
        _ => Some(places[middle - 1] + places[middle]),
    }
}

/// Returns the number of pairs of edges that cross.
fn crossings(graph: &Layered, place: &[usize]) -> usize {
    let between = |layer: &Vec<usize>| {
        let edges = layer.iter().flat_map(|point| {
            let mut ends: Vec<usize> = graph.behind[*point].iter().map(|next| place[*next]).collect();
            ends.sort_unstable();
            ends
        });
        inversions(&edges.collect::<Vec<_>>())
    };
    graph.layers.iter().map(between).sum()
}

/// Returns the number of pairs in which the first number is the larger one, by a tree of sums.
fn inversions(numbers: &[usize]) -> usize {
    let size = numbers.iter().max().map_or(0, |largest| largest + 1);
    let (mut sums, mut count) = (vec![0_usize; size + 1], 0);
    for (seen, number) in numbers.iter().enumerate() {
        let mut at = number + 1;
        let mut not_larger = 0;
        while at > 0 {
            not_larger += sums[at];
            at &= at - 1;
        }
        count += seen - not_larger;
        at = number + 1;
        while at <= size {
            sums[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::inversions;

    #[test]
    fn inversions_are_counted() {
        assert_eq!(inversions(&[]), 0);
        assert_eq!(inversions(&[0, 1, 1, 2]), 0);
        assert_eq!(inversions(&[2, 1, 0]), 3);
        assert_eq!(inversions(&[1, 3, 0, 2]), 3);
    }
}
