//! Tests of the engine on every store. Each file is about one part of the engine; `suite` runs its
//! cases on each store.

// This module comes first because the others use its macros.
#[cfg(test)]
#[macro_use]
mod suite;

#[cfg(test)]
mod calls_under_way;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod test_store;

#[cfg(test)]
mod affinity;
#[cfg(test)]
mod after_commit;
#[cfg(test)]
mod aggregate;
#[cfg(test)]
mod blocking;
#[cfg(test)]
mod buffered;
#[cfg(test)]
mod bulk;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod children;
#[cfg(test)]
mod cleanup;
#[cfg(test)]
mod codec;
#[cfg(test)]
mod completion;
#[cfg(test)]
mod credit;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod finish;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod finish_on_server;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod fused_ends;
#[cfg(test)]
mod fused_faults;
#[cfg(test)]
mod fused_starts;
#[cfg(test)]
mod fuzz_inputs;
#[cfg(test)]
mod heartbeats;
#[cfg(test)]
mod hostile_templates;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod measured;
#[cfg(test)]
mod middleware;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod orchestration_awaits;
#[cfg(test)]
mod orchestration_clients;
#[cfg(test)]
mod orchestration_code;
#[cfg(test)]
mod orchestration_confined;
#[cfg(test)]
mod orchestration_controls;
#[cfg(test)]
mod orchestration_costs;
#[cfg(test)]
mod orchestration_endings;
#[cfg(test)]
mod orchestration_ends;
#[cfg(test)]
mod orchestration_evictions;
#[cfg(test)]
mod orchestration_explained;
#[cfg(test)]
mod orchestration_faults;
#[cfg(test)]
mod orchestration_forks;
#[cfg(test)]
mod orchestration_generations;
#[cfg(test)]
mod orchestration_histories;
#[cfg(test)]
mod orchestration_kills;
#[cfg(test)]
mod orchestration_limits;
#[cfg(test)]
mod orchestration_mail;
#[cfg(test)]
mod orchestration_primitives;
#[cfg(test)]
mod orchestration_remote;
#[cfg(test)]
mod orchestration_sagas;
#[cfg(test)]
mod orchestration_signals;
#[cfg(test)]
mod orchestration_tags;
#[cfg(test)]
mod orchestration_tasks;
#[cfg(test)]
mod orchestrations;
#[cfg(test)]
mod output;
#[cfg(test)]
mod overview;
#[cfg(test)]
mod patterns;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod postgres;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod postgres_idle;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod postgres_outage;
#[cfg(test)]
mod preemption;
#[cfg(test)]
mod pressure;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod seen;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod stops;
#[cfg(test)]
mod stored_templates;
#[cfg(test)]
mod tags;
#[cfg(test)]
mod task_lists;
#[cfg(test)]
mod turn_costs;
#[cfg(test)]
mod typed_tasks;
#[cfg(test)]
mod virtual_time;
#[cfg(test)]
mod waits;
#[cfg(test)]
mod weak_handles;
#[cfg(test)]
mod workflow_children;
#[cfg(test)]
mod workflow_events;
#[cfg(test)]
mod workflow_forks;
#[cfg(test)]
mod workflow_limits;
#[cfg(test)]
mod workflow_paths;
#[cfg(test)]
mod workflow_runs;
#[cfg(test)]
mod workflow_tests;
