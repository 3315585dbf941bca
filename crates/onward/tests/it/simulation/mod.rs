//! A simulated cluster: engines on one store in memory, in one thread and from one seed, while
//! calls are late or lost, nodes crash and pause, and the clocks jump.

mod cases;
mod checks;
mod network;
mod node;
mod trace;
mod work;
mod world;
