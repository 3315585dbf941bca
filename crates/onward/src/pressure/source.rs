//! Sources of pressure.

use std::fmt;

/// A source of pressure: the machine's memory, a connection pool, an upstream service. If an engine
/// has several, the highest pressure counts.
pub trait PressureSource: fmt::Debug + Send + Sync + 'static {
    /// Returns the name that people see, such as `memory`.
    fn name(&self) -> &str;

    /// Returns the present pressure, from 0.0 (none) to 1.0 (the maximum). Other values are
    /// clamped; NaN or a panic counts as 0. The engine calls this about once a second while tasks
    /// run or wait, between its other work. It must return at once, from memory or by a small read.
    fn pressure(&self) -> f32;
}

/// A function as a [`PressureSource`].
///
/// ```
/// use onward::pressure::{PressureFn, PressureSource};
///
/// let pool = PressureFn::new("pool", || 0.25);
/// assert_eq!((pool.name(), pool.pressure()), ("pool", 0.25));
/// ```
pub struct PressureFn {
    name: String,
    function: Box<dyn Fn() -> f32 + Send + Sync>,
}

impl PressureFn {
    /// Returns a source of this name that calls a function.
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
