//! Tests of the real binary, in separate directories. Most cases run on each store ([`stores`]).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[cfg(feature = "serve")]
mod account;
mod aggregate;
mod app;
mod bulk;
mod commands;
#[cfg(target_os = "linux")]
mod crowd;
mod damaged;
mod doctor;
mod doctor_state;
mod each;
mod each_interrupted;
mod each_options;
mod each_runs;
mod events;
mod finish;
mod follow;
mod full_disk;
mod generated;
mod harness;
mod import;
mod json;
mod limit;
#[cfg(feature = "serve")]
mod mcp;
mod moved_store;
mod orchestration;
#[cfg(target_os = "linux")]
mod orphans;
mod own_faults;
#[cfg(feature = "postgres")]
mod postgres;
mod processes;
mod prune;
mod queue;
mod reading;
#[cfg(all(feature = "client", feature = "serve"))]
mod remote;
mod run;
mod run_again;
mod schedule;
#[cfg(feature = "serve")]
mod serve;
mod serve_cluster;
#[cfg(feature = "serve")]
mod serve_issuer;
#[cfg(feature = "serve")]
mod serve_start;
mod settings;
mod store;
mod stores;
mod submit;
mod tag;
mod task;
mod terminal;
#[cfg(feature = "top")]
mod top;
#[cfg(target_os = "linux")]
mod trees;
mod unwritable;
mod work;
mod workflow;
mod workflow_examples;
mod workflow_generate;
mod workflow_runs;
#[cfg(feature = "postgres")]
mod wrong_clock;
mod wrong_usage;
