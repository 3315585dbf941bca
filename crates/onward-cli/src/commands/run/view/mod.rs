//! Output of a run on the way: a tree on a terminal, lines elsewhere, JSON for programs.

mod output;
mod tree;

pub(crate) use output::{View, colored};
