//! What says how high a pressure is.

use std::fmt;

/// Says how high some pressure is: of the machine's memory, of a connection pool, of an upstream
/// service. Where an engine has several, the highest counts.
pub trait PressureSource: fmt::Debug + Send + Sync + 'static {
    /// What people see it as, such as `memory`.
    fn name(&self) -> &str;

    /// How high it is now, from 0.0 (none) to 1.0 (no more can be borne). Values beyond are cut;
    /// not a number, or a panic, counts as 0. Asked about once a second while tasks run or wait, in
    /// between them: it must answer at once, from memory or by a small read.
    fn pressure(&self) -> f32;
}

/// A function as a [`PressureSource`].
///
/// ```
/// use onward::{PressureFn, PressureSource};
///
/// let pool = PressureFn::new("pool", || 0.25);
/// assert_eq!((pool.name(), pool.pressure()), ("pool", 0.25));
/// ```
pub struct PressureFn {
    name: String,
    function: Box<dyn Fn() -> f32 + Send + Sync>,
}

impl PressureFn {
    /// A source of this name that asks a function.
    pub fn new(name: impl Into<String>, function: impl Fn() -> f32 + Send + Sync + 'static) -> Self {
        Self { name: name.into(), function: Box::new(function) }
    }
}

impl PressureSource for PressureFn {
    fn name(&self) -> &str {
        &self.name
    }

    fn pressure(&self) -> f32 {
        (self.function)()
    }
}

impl fmt::Debug for PressureFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PressureFn").field("name", &self.name).finish_non_exhaustive()
    }
}
