//! The reasons for which a sign-in at the issuer ends without a session.

use crate::http::access::issuer::Rejection;
use crate::http::bounds;
use crate::http::problem::{Code, Problem};

/// The reason for which a sign-in ends without a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OidcRefusal {
    /// The browser has no sign-in in progress with this state, or it took too long.
    Over,
    /// The issuer refused, with this error.
    Denied(String),
    /// The issuer did not accept the code.
    Code,
    /// The ID token is not accepted.
    Token(String),
    /// The claims give no role.
    Role,
    /// The issuer cannot be reached, or its responses cannot be read.
    Unavailable,
    /// Too many sign-ins wait for the issuer.
    Busy,
}

impl OidcRefusal {
    /// Returns the word by which the page knows the reason.
    fn word(&self) -> &'static str {
        match self {
            Self::Over => "over",
            Self::Denied(_) => "denied",
            Self::Code => "code",
            Self::Token(_) => "token",
            Self::Role => "role",
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
        }
    }

    /// Returns the place of the page that shows the reason.
    pub(crate) fn place(&self) -> String {
        format!("#/refused/{}", self.word())
    }

    pub(crate) fn problem(&self) -> Problem {
        let again = "begin the sign-in again";
        match self {
            Self::Over => {
                Problem::new(Code::CredentialInvalid, "the sign-in took too long, or another browser began it", again)
            }
            Self::Denied(error) => {
                Problem::new(Code::CredentialInvalid, format!("the issuer refused the sign-in: {error}"), again)
            }
            Self::Code => {
                Problem::new(Code::CredentialInvalid, "the issuer did not accept the code of the sign-in", again)
            }
            Self::Token(fault) => {
                Problem::new(Code::CredentialInvalid, format!("the ID token of the issuer is refused: {fault}"), again)
            }
            Self::Role => Problem::new(
                Code::Forbidden,
                "the claims of the person give no role here",
                "ask an admin for a group with a role; `onward serve --claim-role GROUP=ROLE` gives it one",
            ),
            Self::Unavailable => issuer_unavailable(),
            Self::Busy => {
                let detail = "too many sign-ins wait for the issuer, or failed from this address";
                Problem::new(Code::TooManyAttempts, detail, "try again").retry_after(5)
            }
        }
    }
}

impl From<Rejection> for OidcRefusal {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Unavailable => Self::Unavailable,
            rejection => Self::Token(rejection.to_string()),
        }
    }
}

/// Returns the problem of an issuer that cannot be reached. The address and the fault are in the
/// log.
#[cold]
pub(crate) fn issuer_unavailable() -> Problem {
    let remedy = "try again later; the log of the server has the cause";
    let wait = u32::try_from(bounds::ISSUER_PAUSE.as_secs()).unwrap_or(u32::MAX);
    Problem::new(Code::IssuerUnavailable, "the issuer of tokens cannot be reached", remedy).retry_after(wait)
}
