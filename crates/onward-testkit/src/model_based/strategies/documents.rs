//! Generates the operations of a sequence on documents.

use onward_store::{ExpectedVersion, Name, PutDocument, Write, bounds};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::model_based::steps::Operation;
use crate::test_store::name;

pub(super) fn operation() -> BoxedStrategy<Operation> {
    let delete = (collection(), key(), expect());
    prop_oneof![
        3 => put().prop_map(|put| Write::PutDocument(Box::new(put))),
        1 => delete.prop_map(|(collection, key, expect)| Write::DeleteDocument { collection, key, expect }),
    ]
    .prop_map(|write| Operation::Document(Box::new(write)))
    .boxed()
}

fn put() -> impl Strategy<Value = PutDocument> {
    let content = select(vec![b"".as_slice(), b"one", b"one", b"two"]);
    let content_type = select(vec!["text/plain", "text/plain", "application/json", ""]);
    let index = vec(select(vec!["", "a", "a", "ab", "b", "\u{0}"]), 0..=bounds::DOCUMENT_INDEXES + 1);
    (collection(), key(), expect(), content, content_type, index).prop_map(
        |(collection, key, expect, content, content_type, index)| PutDocument {
            expect,
            content_type: content_type.to_owned(),
            index: index.into_iter().map(str::to_owned).collect(),
            ..PutDocument::new(collection, key, content)
        },
    )
}

fn expect() -> impl Strategy<Value = ExpectedVersion> {
    prop_oneof![
        4 => Just(ExpectedVersion::Any),
        1 => Just(ExpectedVersion::Absent),
        1 => (1..4u64).prop_map(ExpectedVersion::Version),
    ]
}

fn collection() -> impl Strategy<Value = Name> {
    select(vec!["notes", "notes", "pictures"]).prop_map(name)
}

fn key() -> impl Strategy<Value = String> {
    select(vec!["a", "a", "ab", "b", "ä", "a\u{0}", ""]).prop_map(str::to_owned)
}
