//! Records of deliveries, so that none has an effect twice.

use onward_store::{Error, ExpectedVersion, Name, PutDocument, Timestamp, Write};
use sha2::{Digest, Sha256};

/// The beginning of the names of the collections. A hexadecimal digit of the digest follows, so
/// that sixteen collections share the deliveries.
pub(crate) const COLLECTION_PREFIX: &str = "onward.hook-";

/// Returns the write of the record of a delivery. It is refused if the delivery was recorded.
pub(crate) fn delivery_document(hook: &str, id: &str, now: Timestamp) -> Result<Write, Error> {
    let mut digest = Sha256::new();
    digest.update((hook.len() as u64).to_le_bytes());
    digest.update(hook);
    digest.update(id);
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let document = PutDocument {
        expect: ExpectedVersion::Absent,
        index: vec![crate::http::change::time_key(now)],
        ..PutDocument::new(Name::new(format!("{COLLECTION_PREFIX}{}", &digest[..1]))?, digest, Vec::new())
    };
    Ok(Write::PutDocument(Box::new(document)))
}
