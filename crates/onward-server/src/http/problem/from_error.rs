//! Problems of errors of the engine and the store.

use onward_store::Refusal;

use super::code::Code;
use super::document::Problem;

/// The seconds after which a client retries while the store cannot be used.
const STORE_RETRY: u32 = 1;

impl From<onward::Error> for Problem {
    fn from(error: onward::Error) -> Self {
        if let Some(refusal) = error.refusal() {
            return refusal.into();
        }
        let message = error.to_string();
        if error.is_invalid() {
            return Self::of_message(Code::Invalid, &message);
        }
        if error.is_not_found() {
            return Self::of_message(Code::NotFound, &message);
        }
        if error.is_unanswered() {
            return Self::new(Code::Conflict, message, "look at the orchestration, and try again");
        }
        tracing::error!(%error, "the store failed");
        unavailable()
    }
}

impl From<onward_store::Error> for Problem {
    fn from(error: onward_store::Error) -> Self {
        onward::Error::from(error).into()
    }
}

/// Returns the problem of a store that failed. Its message may name files and hosts, so it stays in
/// the log.
#[cold]
pub(crate) fn unavailable() -> Problem {
    Problem::new(Code::StoreUnavailable, "the store failed", "try again; the log of the server has the cause")
        .retry_after(STORE_RETRY)
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let refusal = match refusal {
            // The position counts the writes of the server, which the client does not know.
            Refusal::InAll { refusal, .. } => refusal,
            refusal => refusal,
        };
        Self::of_message(code(refusal), &refusal.to_string())
    }
}

fn code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Invalid(_) | Refusal::DependencyNotFound(_) => Code::Invalid,
        Refusal::TaskNotFound(_)
        | Refusal::QueueNotFound(_)
        | Refusal::ScheduleNotFound(_)
        | Refusal::NoneWithKey { .. } => Code::NotFound,
        Refusal::AlreadyEnded { .. } => Code::AlreadyEnded,
        Refusal::NotEnded { .. } => Code::NotEnded,
        Refusal::KeyTaken { .. } => Code::KeyTaken,
        Refusal::NotAwaited { .. } | Refusal::TokenOutdated(_) => Code::NotAwaited,
        Refusal::ScheduleChanged(_) | Refusal::DocumentChanged { .. } => Code::Changed,
        Refusal::MailboxFull(_) => Code::MailboxFull,
        _ => Code::Conflict,
    }
}
