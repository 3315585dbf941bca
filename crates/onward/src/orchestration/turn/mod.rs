//! Turns: a claimed orchestration is loaded, run and written.

mod deferred_end;
mod evictor;
mod fork_origin;
mod instance;
mod instance_cache;
mod missing_code;
mod omitted_result;
mod open_operations;
mod parked_instances;
mod pending_turn;
mod plan_backoff;
mod planned_orchestration;
mod planned_turn;
mod remote_turn;
mod run_turn;
mod steps;
mod telemetry;

pub(crate) use evictor::Evictor;
pub(super) use fork_origin::{FORKED_FROM, ForkOrigin, numbered};
pub(super) use instance::{History, Instance, InstanceStart, ReplayError, read_history};
pub(crate) use instance_cache::{InstanceCache, TurnSlot, TurnWrite};
pub(crate) use parked_instances::{CheckIn, Positioned};
pub(crate) use planned_turn::{Plan, PlannedCode, PlannedTurn, unclaimed};
pub(crate) use run_turn::{TurnAbort, apply_turn, cancel_here};
pub(crate) use telemetry::{OrchestrationTelemetry, TurnOutcome};
