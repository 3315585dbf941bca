//! Passes application state as an argument to typed handlers.

use std::any::{TypeId, type_name};
use std::future::Future;
use std::sync::Arc;

use crate::handlers::{Context, Failure, Handler, HandlerOptions};
use crate::submit::{Task, typed};

/// A function that returns true if there is a state of a type.
pub(crate) type HasState<'a> = &'a dyn Fn(TypeId) -> bool;

/// The state that a handler of [`register_stateful`](crate::Engine::register_stateful) may take: an
/// `Arc` of one state, or a tuple of up to four.
pub trait FromState: sealed::Sealed + Sized + Send + 'static {
    /// Takes the state from the module of the attempt's handler or from its engine.
    ///
    /// # Errors
    /// A permanent failure that names the missing type.
    fn of(context: &Context) -> Result<Self, Failure>;

    /// Returns the name of a type that is needed and missing.
    #[doc(hidden)]
    fn missing(has: &dyn Fn(TypeId) -> bool) -> Option<&'static str>;
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for std::sync::Arc<T> {}
    impl<A, B> Sealed for (A, B) {}
    impl<A, B, C> Sealed for (A, B, C) {}
    impl<A, B, C, D> Sealed for (A, B, C, D) {}
}

impl<T: Send + Sync + 'static> FromState for Arc<T> {
    fn of(context: &Context) -> Result<Self, Failure> {
        context.state()
    }

    fn missing(has: HasState<'_>) -> Option<&'static str> {
        (!has(TypeId::of::<T>())).then(type_name::<T>)
    }
}

impl<A: FromState, B: FromState> FromState for (A, B) {
    fn of(context: &Context) -> Result<Self, Failure> {
        Ok((A::of(context)?, B::of(context)?))
    }

    fn missing(has: HasState<'_>) -> Option<&'static str> {
        A::missing(has).or_else(|| B::missing(has))
    }
}

impl<A: FromState, B: FromState, C: FromState> FromState for (A, B, C) {
    fn of(context: &Context) -> Result<Self, Failure> {
        Ok((A::of(context)?, B::of(context)?, C::of(context)?))
    }

    fn missing(has: HasState<'_>) -> Option<&'static str> {
        <(A, B)>::missing(has).or_else(|| C::missing(has))
    }
}

impl<A: FromState, B: FromState, C: FromState, D: FromState> FromState for (A, B, C, D) {
    fn of(context: &Context) -> Result<Self, Failure> {
        Ok((A::of(context)?, B::of(context)?, C::of(context)?, D::of(context)?))
    }

    fn missing(has: HasState<'_>) -> Option<&'static str> {
        <(A, B, C)>::missing(has).or_else(|| D::missing(has))
    }
}

/// Returns the untyped form of a typed handler that takes state.
pub(crate) fn stateful<T, S, F, Fut>(options: HandlerOptions, function: F) -> Handler
where
    T: Task,
    S: FromState,
    F: Fn(T, S, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
{
    let function = Arc::new(function);
    let handler = typed::handler(options, move |task: T, context: Context| {
        let function = Arc::clone(&function);
        async move {
            let state = S::of(&context)?;
            function(task, state, context).await
        }
    });
    Handler { missing: Some(S::missing), ..handler }
}
