//! Guards: versions by which `If-Match` holds from the read of a thing to the commit of its change.

use onward_store::{Error, ExpectedVersion, Name, PutDocument, Store, StoreReads, Write};

use super::scope::ChangeScope;

/// The collection of the guards. Each change of a thing through the API, at any server, puts the
/// document of the thing in its own commit.
pub(crate) const COLLECTION: &str = "onward.guards";

/// Adds the guard of a thing to the changes of the present request. If the request is conditional,
/// its change is refused when another request has changed the thing since this call. Call it before
/// the thing is read.
pub(crate) async fn guard(store: &dyn Store, thing: String, is_conditional: bool) -> Result<(), Error> {
    let collection = Name::new(COLLECTION)?;
    let expect = match is_conditional {
        false => ExpectedVersion::Any,
        true => match store.document(collection.clone(), thing.clone()).await? {
            Some(guard) => ExpectedVersion::Version(guard.version),
            None => ExpectedVersion::Absent,
        },
    };
    // A put of the existing content would not change the version.
    let content = fastrand::u128(..).to_le_bytes().to_vec();
    let document = PutDocument { expect, ..PutDocument::new(collection, thing, content) };
    if let Some(scope) = ChangeScope::current() {
        scope.set_guard(Write::PutDocument(Box::new(document)));
    }
    Ok(())
}
