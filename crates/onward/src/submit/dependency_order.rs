//! Submits a batch whose tasks depend on each other and are not in a valid order.

use onward_store::rules::dependencies::order;
use onward_store::{Dependency, NewTask, Refusal, Submitted};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Submits the tasks in a valid order, and returns the results in the given order.
pub(crate) async fn submit_in_order(engine: &Engine, tasks: Vec<NewTask>) -> Result<Vec<Submitted>> {
    let order = order(&tasks).map_err(Error::from)?;
    let places = places(&order);
    let mut tasks: Vec<Option<NewTask>> = tasks.into_iter().map(Some).collect();
    let ordered = order.iter().filter_map(|position| tasks[*position].take()).map(|task| renumbered(task, &places));
    // The tasks are in order now, so `submit_all` does not call this function again.
    let submitted = Box::pin(engine.submit_all(ordered.collect())).await.map_err(|error| in_place(error, &order))?;
    Ok(places.into_iter().map(|place| submitted[place]).collect())
}

/// Returns the inverse of an order: for each given position, its position in the order.
fn places(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, position)| places[*position] = place);
    places
}

fn renumbered(mut task: NewTask, places: &[usize]) -> NewTask {
    for dependency in &mut task.depends_on.tasks {
        if let Dependency::Position(position) = dependency {
            *position = places[*position];
        }
    }
    task
}

/// Returns the error with the index of the task among those given.
fn in_place(error: Error, order: &[usize]) -> Error {
    match error.refusal() {
        Some(Refusal::InAll { index, refusal }) => {
            let index = order.get(*index).copied().unwrap_or(*index);
            Refusal::InAll { index, refusal: refusal.clone() }.into()
        }
        _ => error,
    }
}
