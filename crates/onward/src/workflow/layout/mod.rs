//! The layout of a graph for drawings: layers by the longest path, order by medians, then
//! coordinates. All of it is computed from the edges alone, so a graph has one layout.

mod compute;
mod coordinates;
mod fold;
mod layers;
mod order;

pub use compute::{EdgePath, Layout, Position, layout};
pub use fold::fold;
