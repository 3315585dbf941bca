//! The stable codes of problems.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

macro_rules! codes {
    ($($(#[doc = $doc:expr])* $variant:ident = $status:ident, $text:literal, $title:literal;)*) => {
        /// A code of a problem. Programs act on it; the text of a problem is for people.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the code as it is written, such as `not_found`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Returns the status with which the problem is sent.
            #[must_use]
            pub fn status(self) -> StatusCode {
                match self {
                    $(Self::$variant => StatusCode::$status,)*
                }
            }

            /// Returns the title, which is the same for each problem of the code.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)*
                }
            }
        }
    };
}

codes! {
    /// The request has no credential.
    CredentialMissing = UNAUTHORIZED, "credential_missing", "A credential is required";
    /// The credential is unknown, has expired or was revoked.
    CredentialInvalid = UNAUTHORIZED, "credential_invalid", "The credential is not valid";
    /// Too many sign-ins failed, or too many wait.
    TooManyAttempts = TOO_MANY_REQUESTS, "too_many_attempts", "Too many sign-ins";
    /// The role of the key does not allow the request.
    Forbidden = FORBIDDEN, "forbidden", "The key does not allow this";
    /// The request comes from a page of another origin.
    OriginRefused = FORBIDDEN, "origin_refused", "Requests from this origin are refused";
    /// The request is for a host that this server is not.
    HostUnknown = MISDIRECTED_REQUEST, "host_unknown", "This server does not have that name";
    /// There is no such path.
    RouteUnknown = NOT_FOUND, "route_unknown", "There is no such path";
    /// The path does not have the method.
    MethodNotAllowed = METHOD_NOT_ALLOWED, "method_not_allowed", "The path does not have this method";
    /// The thing that the path names does not exist.
    NotFound = NOT_FOUND, "not_found", "It does not exist";
    /// The body or the query cannot be read.
    Malformed = BAD_REQUEST, "malformed", "The request cannot be read";
    /// A value breaks a rule.
    Invalid = UNPROCESSABLE_ENTITY, "invalid", "A value is not valid";
    /// The body has a content type that the path does not take.
    MediaTypeUnknown = UNSUPPORTED_MEDIA_TYPE, "media_type_unknown", "The content type is not known here";
    /// The body is too large.
    BodyTooLarge = PAYLOAD_TOO_LARGE, "body_too_large", "The body is too large";
    /// The body did not arrive in time.
    RequestTimeout = REQUEST_TIMEOUT, "request_timeout", "The request took too long to arrive";
    /// The task has ended.
    AlreadyEnded = CONFLICT, "already_ended", "It has ended";
    /// The task has not ended.
    NotEnded = CONFLICT, "not_ended", "It has not ended";
    /// The task ended without a result, because it failed, died or expired.
    TaskFailed = CONFLICT, "task_failed", "The task failed";
    /// The task was cancelled, so it has no result.
    TaskCancelled = CONFLICT, "task_cancelled", "The task was cancelled";
    /// The code of the orchestration refused the update.
    UpdateRefused = CONFLICT, "update_refused", "The code refused the update";
    /// The request needs the code of the orchestration, which another process has.
    CodeElsewhere = CONFLICT, "code_elsewhere", "The code is in another process";
    /// The state of the thing does not allow the request.
    Conflict = CONFLICT, "conflict", "Its state does not allow this";
    /// Another task has the unique key.
    KeyTaken = CONFLICT, "key_taken", "Another task has the key";
    /// No attempt of the task waits for an external completion, or the token names an earlier one.
    NotAwaited = CONFLICT, "not_awaited", "No such attempt waits for completion";
    /// The thing was changed since it was read.
    Changed = PRECONDITION_FAILED, "changed", "It was changed since it was read";
    /// The `Idempotency-Key` was used with another request.
    IdempotencyMismatch = UNPROCESSABLE_ENTITY, "idempotency_mismatch", "The idempotency key belongs to another request";
    /// The result of the first request with the `Idempotency-Key` is not kept any more.
    IdempotencyResultGone = CONFLICT, "idempotency_result_gone", "The first result is not kept any more";
    /// Too many event streams, or connections of workers, are open.
    TooManyStreams = TOO_MANY_REQUESTS, "too_many_streams", "Too many streams are open";
    /// Too many messages wait for the orchestration.
    MailboxFull = TOO_MANY_REQUESTS, "mailbox_full", "Too many messages wait";
    /// The issuer of tokens cannot be reached.
    IssuerUnavailable = SERVICE_UNAVAILABLE, "issuer_unavailable", "The issuer cannot be reached";
    /// The server is stopping.
    Stopping = SERVICE_UNAVAILABLE, "stopping", "The server is stopping";
    /// The store failed, or did not reply in time.
    StoreUnavailable = SERVICE_UNAVAILABLE, "store_unavailable", "The store cannot be used";
    /// The server has a fault.
    Internal = INTERNAL_SERVER_ERROR, "internal", "The server has a fault";
}
