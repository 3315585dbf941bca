//! Errors of the client, as those of a store.

use onward_store::Error;

/// Returns the error of a store for that of the client, which names the server or the remedy.
pub(super) fn store_error(error: onward_client::Error) -> Error {
    let text = error.to_string();
    let kind = match error.code() {
        Some("route_unknown" | "method_not_allowed") => {
            Error::version(format!("the server does not serve the command line ({text}); use one of this version"))
        }
        Some("malformed") => Error::version(format!("{text}; compare the versions of the server and of this program")),
        _ if error.is_invalid() => Error::invalid(text),
        _ if error.is_denied() => Error::denied(text),
        _ => Error::io(text),
    };
    kind.caused_by(error)
}
