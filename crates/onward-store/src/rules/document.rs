//! The bounds of documents, and the check of the version that a write expects.

use crate::api::document::{ExpectedVersion, PutDocument};
use crate::api::name::Name;
use crate::api::outcome::Refusal;
use crate::bounds;
use crate::text::Shown;

/// Checks a document before it is stored.
///
/// # Errors
/// [`Refusal::Invalid`] for a key, a content type, a content or an index out of its bounds.
pub fn check(put: &PutDocument) -> Result<(), Refusal> {
    check_key(&put.collection, &put.key)?;
    let document = || format!("the document `{}` of `{}`", Shown(&put.key), put.collection);
    let wrong = |what: String| Err(Refusal::Invalid(format!("{} {what}", document())));
    if put.content.len() > bounds::DOCUMENT_BYTES {
        let (bytes, limit) = (put.content.len(), bounds::DOCUMENT_BYTES);
        return wrong(format!("has {bytes} bytes and may have {limit}; split it, or store a reference"));
    }
    let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if put.content_type.is_empty() || !is_visible(&put.content_type) {
        return wrong("has a content type that is empty or not visible ASCII; write a media type".to_owned());
    }
    if put.content_type.len() > bounds::CONTENT_TYPE_BYTES {
        let (bytes, limit) = (put.content_type.len(), bounds::CONTENT_TYPE_BYTES);
        return wrong(format!("has a content type of {bytes} bytes and it may have {limit}; shorten it"));
    }
    if put.index.len() > bounds::DOCUMENT_INDEXES {
        let (values, limit) = (put.index.len(), bounds::DOCUMENT_INDEXES);
        return wrong(format!("has {values} index values and may have {limit}; put the others in the content"));
    }
    let is_long = |value: &String| value.len() > bounds::DOCUMENT_INDEX_BYTES;
    match put.index.iter().position(is_long) {
        None => Ok(()),
        Some(number) => {
            let (bytes, limit) = (put.index.get(number).map_or(0, String::len), bounds::DOCUMENT_INDEX_BYTES);
            wrong(format!("has an index value {number} of {bytes} bytes and it may have {limit}; use a digest of it"))
        }
    }
}

/// Checks the key of a document.
///
/// # Errors
/// [`Refusal::Invalid`] for an empty key, and for one of more than [`bounds::DOCUMENT_KEY_BYTES`].
pub fn check_key(collection: &Name, key: &str) -> Result<(), Refusal> {
    if (1..=bounds::DOCUMENT_KEY_BYTES).contains(&key.len()) {
        return Ok(());
    }
    let (bytes, limit) = (key.len(), bounds::DOCUMENT_KEY_BYTES);
    Err(Refusal::Invalid(format!(
        "the key of a document of `{collection}` has {bytes} bytes and may have 1 to {limit}; use a digest of a long key"
    )))
}

/// Checks that a document has the version that a write expects. `version` is `None` if there is no
/// document.
///
/// # Errors
/// [`Refusal::DocumentChanged`] with the present version.
pub fn check_version(
    expect: ExpectedVersion,
    version: Option<u64>,
    collection: &Name,
    key: &str,
) -> Result<(), Refusal> {
    let is_met = match expect {
        ExpectedVersion::Any => true,
        ExpectedVersion::Absent => version.is_none(),
        ExpectedVersion::Version(expected) => version == Some(expected),
    };
    if is_met {
        return Ok(());
    }
    Err(Refusal::DocumentChanged { collection: collection.clone(), key: key.to_owned(), version })
}

/// Checks that there is room for a new document. `documents` is the number in its collection and
/// `collections` the number of all collections.
///
/// # Errors
/// [`Refusal::Invalid`] for a full collection, and for a new collection if the store has as many as
/// it may have.
pub fn check_room(collection: &Name, documents: u64, collections: u64) -> Result<(), Refusal> {
    if documents >= bounds::DOCUMENTS {
        return Err(Refusal::Invalid(format!(
            "the collection `{collection}` has {documents} documents and may have {}; delete some before you add others",
            bounds::DOCUMENTS
        )));
    }
    if documents == 0 && collections >= bounds::DOCUMENT_COLLECTIONS {
        return Err(Refusal::Invalid(format!(
            "the store has {collections} collections and may have {}; delete the documents of one before you add `{collection}`",
            bounds::DOCUMENT_COLLECTIONS
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_collection_takes_no_other_document() {
        let name = Name::new("notes").unwrap();
        assert_eq!(check_room(&name, bounds::DOCUMENTS - 1, 1), Ok(()));
        let refusal = check_room(&name, bounds::DOCUMENTS, 1).unwrap_err();
        assert!(refusal.to_string().contains("may have 1000000"), "{refusal}");
    }

    #[test]
    fn a_known_collection_grows_beside_as_many_as_there_may_be() {
        let name = Name::new("notes").unwrap();
        assert_eq!(check_room(&name, 1, bounds::DOCUMENT_COLLECTIONS), Ok(()));
        assert!(check_room(&name, 0, bounds::DOCUMENT_COLLECTIONS).is_err());
    }
}
