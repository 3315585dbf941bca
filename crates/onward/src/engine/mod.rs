//! The engine: a program opens it, registers handlers with it and runs it.

mod app_state;
mod builder;
mod injection;
mod inner;
mod kind_pattern;
mod module;
mod register;
mod registrations;
mod run;
mod running;
mod settings;
mod store_location;
mod weak_engine;

pub(crate) use app_state::AppState;
pub use builder::EngineBuilder;
pub use injection::FromState;
pub(crate) use injection::HasState;
pub use inner::Engine;
pub(crate) use inner::Inner;
pub(crate) use kind_pattern::KindPattern;
pub use module::{Module, ModuleParts};
pub(crate) use run::Run;
pub(crate) use settings::Settings;
pub(crate) use weak_engine::InHandler;
pub use weak_engine::WeakEngine;
