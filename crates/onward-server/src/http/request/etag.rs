//! Entity tags: a client can make a change depend on the version that it has read.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::call::Call;
use crate::http::change::guard;
use crate::http::problem::{Code, Problem};

/// Returns the entity tag of a thing: a digest of its settings.
pub(crate) fn etag<T: Serialize>(settings: &T) -> String {
    // Settings are numbers and texts, so they can always be written.
    let digest = Sha256::digest(serde_json::to_vec(settings).unwrap_or_default());
    let digits: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

/// Adds the entity tag to a response.
pub(crate) fn with_etag(mut response: Response<Body>, etag: &str) -> Response<Body> {
    if let Ok(value) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

impl Call {
    /// Adds the guard of a thing to the changes of the request, so that `If-Match` holds until the
    /// commit. Call it before the thing is read.
    pub(crate) async fn guard(&self, thing: String) -> Result<(), Problem> {
        Ok(guard(&*self.server.store, thing, self.header("if-match").is_some()).await?)
    }

    /// Checks `If-Match` against the entity tag of the present thing; `None` if there is none.
    pub(crate) fn check_match(&self, present: Option<&str>) -> Result<(), Problem> {
        let Some(wanted) = self.header("if-match") else { return Ok(()) };
        let matches = |tag: &str| (tag == "*" && present.is_some()) || Some(tag) == present;
        if wanted.split(',').any(|tag| matches(tag.trim())) {
            return Ok(());
        }
        let remedy = "read it again, and repeat the change on what it is now";
        Err(Problem::new(Code::Changed, "it is not what the entity tag names", remedy).field("If-Match"))
    }
}
