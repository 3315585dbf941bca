//! The real binary, in directories of its own.

mod doctor;
mod each;
mod each_interrupted;
mod each_options;
mod generated;
mod harness;
mod queue;
mod store;
mod submit;
mod task;
mod work;
mod wrong_usage;
