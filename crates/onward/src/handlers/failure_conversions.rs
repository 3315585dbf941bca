//! Converts errors into failures, and failures into errors.
//!
//! `From<E> for Failure` covers every error, so `Failure` cannot be an error itself: it would then
//! have two conversions from itself. `anyhow::Error` is not a `std::error::Error` for the same
//! reason. Both, and boxed errors, convert into `Box<dyn Error + Send + Sync>`, so the conversion
//! requires that.

use std::error::Error as StdError;
use std::fmt;

use super::failure::Failure;

/// The error that every other error converts into.
type BoxedError = Box<dyn StdError + Send + Sync>;

/// A [`Failure`] as an error, made by [`Failure::into_error`]. `?` turns it, or an error that it
/// caused, back into the same failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureError(Failure);

impl FailureError {
    /// Returns the failure.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.0
    }
}

impl fmt::Display for FailureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for FailureError {}

impl Failure {
    /// Returns the failure as an error, for functions that return another error type:
    /// `failing().map_err(Failure::into_error)?`.
    ///
    /// ```
    /// use onward::Failure;
    /// use onward::task::FailureClass;
    ///
    /// fn charge() -> Result<(), Failure> {
    ///     Err(Failure::permanent("the card is blocked"))
    /// }
    ///
    /// fn order() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     charge().map_err(Failure::into_error)?;
    ///     Ok(())
    /// }
    ///
    /// fn handler() -> Result<(), Failure> {
    ///     Ok(order()?)
    /// }
    /// assert_eq!(handler().unwrap_err().class(), FailureClass::Permanent);
    /// ```
    #[must_use]
    pub fn into_error(self) -> FailureError {
        FailureError(self)
    }
}

impl<E: Into<BoxedError> + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        #[cfg(feature = "anyhow")]
        let error = match of_anyhow(error) {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        match error.into().downcast::<FailureError>() {
            Ok(own) => own.0,
            Err(error) => of_chain(&*error),
        }
    }
}

/// Returns a failure with the text of an error and of its causes. It has the class of the first
/// cause that has one.
fn of_chain(error: &(dyn StdError + 'static)) -> Failure {
    let mut message = error.to_string();
    let mut own = error.downcast_ref::<FailureError>();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        own = own.or_else(|| cause.downcast_ref());
        source = cause.source();
    }
    match own {
        Some(own) => own.0.clone().with_message(message),
        None => Failure::retryable(message),
    }
}

/// Returns the failure inside an `anyhow::Error`. Converting to a box would hide the outermost
/// error.
#[cfg(feature = "anyhow")]
fn of_anyhow<E: 'static>(error: E) -> Result<Failure, E> {
    let any: &dyn std::any::Any = &error;
    let Some(error_of_anyhow) = any.downcast_ref::<anyhow::Error>() else { return Err(error) };
    match error_of_anyhow.downcast_ref::<FailureError>() {
        Some(own) => Ok(own.0.clone().with_message(format!("{error_of_anyhow:#}"))),
        None => Err(error),
    }
}

#[cfg(feature = "anyhow")]
impl From<Failure> for anyhow::Error {
    fn from(failure: Failure) -> Self {
        Self::new(failure.into_error())
    }
}
