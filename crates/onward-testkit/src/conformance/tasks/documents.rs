//! Documents: their versions, orders and bounds.

use std::time::Duration;

use onward_store::{
    DocumentCursor, DocumentPage, DocumentQuery, DocumentRecord, DocumentSelection, ExpectedVersion, OnDuplicate,
    Outcome, PutDocument, Refusal, StoreReads, TaskId, Write, bounds,
};

use crate::test_store::{TestStore, keyed, name, task};

fn document(key: &str, content: &'static str) -> PutDocument {
    PutDocument { content_type: "text/plain".to_owned(), ..PutDocument::new(name("notes"), key, content) }
}

fn indexed(key: &str, index: &[&str]) -> PutDocument {
    PutDocument { index: index.iter().map(|value| (*value).to_owned()).collect(), ..document(key, "text") }
}

fn put(document: PutDocument) -> Write {
    Write::PutDocument(Box::new(document))
}

fn expecting(expect: ExpectedVersion, document: PutDocument) -> Write {
    put(PutDocument { expect, ..document })
}

fn delete(key: &str, expect: ExpectedVersion) -> Write {
    Write::DeleteDocument { collection: name("notes"), key: key.to_owned(), expect }
}

fn stored(version: u64) -> Outcome {
    Outcome::DocumentPut { version, changed: true }
}

fn changed(key: &str, version: Option<u64>) -> Refusal {
    Refusal::DocumentChanged { collection: name("notes"), key: key.to_owned(), version }
}

async fn find(store: &TestStore, key: &str) -> Option<DocumentRecord> {
    store.inner().document(name("notes"), key.to_owned()).await.ok()?
}

async fn put_all(store: &TestStore, documents: Vec<PutDocument>) {
    store.apply(documents.into_iter().map(put).collect()).await;
}

async fn page(store: &TestStore, query: DocumentQuery) -> DocumentPage {
    let page = store.inner().documents(query).await;
    page.unwrap_or_else(|error| unreachable!("documents can be read: {error}"))
}

fn of(selection: DocumentSelection) -> DocumentQuery {
    DocumentQuery { selection, ..DocumentQuery::new(name("notes")) }
}

fn keys(page: &DocumentPage) -> Vec<&str> {
    page.documents.iter().map(|document| document.key.as_str()).collect()
}

pub async fn a_document_is_read_as_it_was_put(store: TestStore) {
    let new = PutDocument { index: vec!["x".into(), String::new()], ..document("a", "text") };
    assert_eq!(store.write(put(new)).await, stored(1));
    let expected = DocumentRecord {
        collection: name("notes"),
        key: "a".to_owned(),
        version: 1,
        changed_at: store.now(),
        content_type: "text/plain".to_owned(),
        index: vec!["x".to_owned(), String::new()],
        content: Some("text".into()),
    };
    assert_eq!(find(&store, "a").await, Some(expected));
}

pub async fn a_document_that_was_not_put_is_not_there(store: TestStore) {
    store.write(put(document("a", "text"))).await;
    assert_eq!(find(&store, "A").await, None);
    assert_eq!(store.inner().document(name("other"), "a".into()).await.ok(), Some(None));
}

pub async fn each_change_of_a_document_counts_its_version_up(store: TestStore) {
    let outcomes = store.apply(vec![put(document("a", "one")), put(document("a", "two"))]).await;
    assert_eq!(outcomes, [stored(1), stored(2)]);
    store.advance(Duration::from_secs(1));
    assert_eq!(store.write(put(indexed("a", &["x"]))).await, stored(3));
    let record = find(&store, "a").await.map(|record| (record.version, record.changed_at, record.content));
    assert_eq!(record, Some((3, store.now(), Some("text".into()))));
}

pub async fn an_unchanged_document_keeps_its_version_and_its_time(store: TestStore) {
    store.write(put(indexed("a", &["x"]))).await;
    let before = find(&store, "a").await;
    store.advance(Duration::from_secs(1));
    let outcome = store.write(put(indexed("a", &["x"]))).await;
    assert!(matches!(outcome, Outcome::DocumentPut { version: 1, .. }), "{outcome:?}");
    // A codec that never encodes a content alike makes a change of it.
    if outcome == (Outcome::DocumentPut { version: 1, changed: false }) {
        assert_eq!(find(&store, "a").await, before);
    }
}

pub async fn another_content_type_or_index_is_a_change(store: TestStore) {
    store.write(put(indexed("a", &["x"]))).await;
    assert_eq!(store.write(put(indexed("a", &["x", ""]))).await, stored(2));
    let json = PutDocument { content_type: "application/json".into(), ..indexed("a", &["x", ""]) };
    assert_eq!(store.write(put(json)).await, stored(3));
}

pub async fn a_document_that_is_there_is_not_put_as_a_new_one(store: TestStore) {
    let new = || expecting(ExpectedVersion::Absent, document("a", "one"));
    assert_eq!(store.write(new()).await, stored(1));
    assert_eq!(store.refused(new()).await, changed("a", Some(1)));
}

pub async fn a_document_of_another_version_is_not_replaced(store: TestStore) {
    let two = |version| expecting(ExpectedVersion::Version(version), document("a", "two"));
    assert_eq!(store.refused(two(1)).await, changed("a", None));
    store.write(put(document("a", "one"))).await;
    assert_eq!(store.refused(two(2)).await, changed("a", Some(1)));
    assert_eq!(find(&store, "a").await.and_then(|record| record.content), Some("one".into()));
    assert_eq!(store.write(two(1)).await, stored(2));
}

pub async fn of_two_writes_that_expect_one_version_one_succeeds(store: TestStore) {
    store.write(put(document("a", "one"))).await;
    let change = |content| expecting(ExpectedVersion::Version(1), document("a", content));
    let outcomes = store.apply(vec![change("two"), change("three")]).await;
    assert_eq!(outcomes, [stored(2), Outcome::Refused(changed("a", Some(2)))]);
}

pub async fn a_deleted_document_is_gone_and_a_new_one_begins_at_one(store: TestStore) {
    store.apply(vec![put(document("a", "one")), put(document("a", "two"))]).await;
    assert_eq!(
        store.write(delete("a", ExpectedVersion::Version(2))).await,
        Outcome::DocumentDeleted { version: Some(2) }
    );
    assert_eq!(find(&store, "a").await, None);
    assert_eq!(keys(&page(&store, of(DocumentSelection::KeyPrefix(String::new()))).await), Vec::<&str>::new());
    assert_eq!(store.write(put(document("a", "three"))).await, stored(1));
}

pub async fn a_document_is_deleted_in_the_expected_version_alone(store: TestStore) {
    store.write(put(document("a", "one"))).await;
    assert_eq!(store.refused(delete("a", ExpectedVersion::Version(2))).await, changed("a", Some(1)));
    assert_eq!(store.refused(delete("a", ExpectedVersion::Absent)).await, changed("a", Some(1)));
    assert_eq!(store.refused(delete("b", ExpectedVersion::Version(1))).await, changed("b", None));
    assert_eq!(store.write(delete("b", ExpectedVersion::Any)).await, Outcome::DocumentDeleted { version: None });
}

/// Shows: T1
pub async fn a_document_and_a_task_are_written_together(store: TestStore) {
    let submit = || Write::Submit(Box::new(task("k")));
    let both = Write::All(vec![put(document("a", "one")), submit()]);
    assert!(matches!(store.write(both).await, Outcome::All(_)));
    assert!(find(&store, "a").await.is_some());
    assert_eq!(store.list(Default::default()).await, [TaskId(1)]);
}

/// Shows: T1
pub async fn a_refused_write_of_an_all_undoes_documents(store: TestStore) {
    store.apply(vec![put(indexed("a", &["x"])), put(document("b", "one"))]).await;
    let all = vec![
        put(document("a", "two")),
        delete("b", ExpectedVersion::Any),
        put(document("c", "new")),
        Write::Cancel { task: TaskId(999) },
    ];
    store.refused(Write::All(all)).await;
    let values: Vec<_> = page(&store, of(DocumentSelection::KeyPrefix(String::new()))).await.documents;
    let values: Vec<_> = values.iter().map(|record| (record.key.as_str(), record.version)).collect();
    assert_eq!(values, [("a", 1), ("b", 1)]);
    assert_eq!(keys(&page(&store, of(value(0, "x"))).await), ["a"]);
}

/// Shows: T1
pub async fn a_refused_document_undoes_the_task_beside_it(store: TestStore) {
    store.write(put(document("a", "one"))).await;
    let submit = Write::Submit(Box::new(keyed("key", OnDuplicate::Reject)));
    let refusal =
        store.refused(Write::All(vec![submit, expecting(ExpectedVersion::Absent, document("a", "two"))])).await;
    assert_eq!(refusal, Refusal::InAll { index: 1, refusal: Box::new(changed("a", Some(1))) });
    assert_eq!(store.list(Default::default()).await, []);
}

pub async fn a_collection_is_listed_in_the_order_of_its_keys(store: TestStore) {
    put_all(&store, ["b", "ä", "a", "ab", "B"].map(|key| document(key, "text")).into()).await;
    store.write(put(PutDocument::new(name("other"), "aa", "text"))).await;
    assert_eq!(keys(&page(&store, of(DocumentSelection::KeyPrefix(String::new()))).await), ["B", "a", "ab", "b", "ä"]);
}

pub async fn documents_are_listed_by_the_prefix_of_a_key(store: TestStore) {
    put_all(&store, ["a", "a/1", "a/2", "a0", "b/1"].map(|key| document(key, "text")).into()).await;
    assert_eq!(keys(&page(&store, of(DocumentSelection::KeyPrefix("a/".into()))).await), ["a/1", "a/2"]);
    assert_eq!(keys(&page(&store, of(DocumentSelection::KeyPrefix("c".into()))).await), Vec::<&str>::new());
}

fn value(index: usize, value: &str) -> DocumentSelection {
    DocumentSelection::IndexValue { index, value: value.to_owned() }
}

pub async fn documents_are_found_by_a_value_of_an_index(store: TestStore) {
    let documents = [("c", ["x", "1"]), ("a", ["x", "2"]), ("b", ["xx", "1"])];
    put_all(&store, documents.map(|(key, index)| indexed(key, &index)).into()).await;
    assert_eq!(keys(&page(&store, of(value(0, "x"))).await), ["a", "c"]);
    assert_eq!(keys(&page(&store, of(value(1, "1"))).await), ["b", "c"]);
}

pub async fn documents_are_listed_by_the_prefix_of_an_index_value(store: TestStore) {
    let documents = [("c", ["", "ab"]), ("a", ["", "b"]), ("b", ["", "a"]), ("d", ["", "ab"])];
    put_all(&store, documents.map(|(key, index)| indexed(key, &index)).into()).await;
    let prefix = |prefix: &str| of(DocumentSelection::IndexPrefix { index: 1, prefix: prefix.to_owned() });
    assert_eq!(keys(&page(&store, prefix("a")).await), ["b", "c", "d"]);
    assert_eq!(keys(&page(&store, prefix("")).await), ["b", "c", "d", "a"]);
}

pub async fn an_empty_value_is_in_no_index(store: TestStore) {
    put_all(&store, vec![indexed("a", &["", "x"]), document("b", "text")]).await;
    let all = of(DocumentSelection::IndexPrefix { index: 0, prefix: String::new() });
    assert_eq!(keys(&page(&store, all).await), Vec::<&str>::new());
    assert_eq!(keys(&page(&store, of(value(0, ""))).await), Vec::<&str>::new());
    assert_eq!(keys(&page(&store, of(value(bounds::DOCUMENT_INDEXES, "x"))).await), Vec::<&str>::new());
}

pub async fn a_changed_document_is_found_by_its_new_values_alone(store: TestStore) {
    put_all(&store, vec![indexed("a", &["old"]), indexed("a", &["new"])]).await;
    assert_eq!(keys(&page(&store, of(value(0, "old"))).await), Vec::<&str>::new());
    assert_eq!(keys(&page(&store, of(value(0, "new"))).await), ["a"]);
}

pub async fn a_listing_goes_on_behind_its_page(store: TestStore) {
    put_all(&store, ["a", "b", "c"].map(|key| indexed(key, &["x"])).into()).await;
    for selection in [DocumentSelection::KeyPrefix(String::new()), value(0, "x")] {
        let first = page(&store, DocumentQuery { limit: 2, ..of(selection.clone()) }).await;
        assert_eq!(keys(&first), ["a", "b"]);
        let second = page(&store, DocumentQuery { after: first.next, ..of(selection) }).await;
        assert_eq!((keys(&second), second.next.clone()), (vec!["c"], None));
    }
}

pub async fn a_page_that_has_everything_has_no_next(store: TestStore) {
    put_all(&store, ["a", "b"].map(|key| document(key, "text")).into()).await;
    let all = of(DocumentSelection::KeyPrefix(String::new()));
    assert_eq!(page(&store, DocumentQuery { limit: 2, ..all }).await.next, None);
}

/// A page may begin after a document that was deleted since, or before the selection.
pub async fn a_listing_goes_on_behind_a_document_that_is_gone(store: TestStore) {
    put_all(&store, ["a", "c/1", "c/2"].map(|key| document(key, "text")).into()).await;
    let after = |key: &str| Some(DocumentCursor { value: String::new(), key: key.to_owned() });
    let all = || of(DocumentSelection::KeyPrefix(String::new()));
    assert_eq!(keys(&page(&store, DocumentQuery { after: after("b"), ..all() }).await), ["c/1", "c/2"]);
    let below = || of(DocumentSelection::KeyPrefix("c/".into()));
    assert_eq!(keys(&page(&store, DocumentQuery { after: after("a"), ..below() }).await), ["c/1", "c/2"]);
    assert_eq!(keys(&page(&store, DocumentQuery { after: after("d"), ..below() }).await), Vec::<&str>::new());
}

pub async fn a_listing_has_contents_if_it_asks_for_them(store: TestStore) {
    store.write(put(document("a", "text"))).await;
    let all = || of(DocumentSelection::KeyPrefix(String::new()));
    let content = |page: DocumentPage| page.documents.into_iter().next().and_then(|record| record.content);
    assert_eq!(content(page(&store, all()).await), None);
    let with_content = DocumentQuery { with_content: true, ..all() };
    assert_eq!(content(page(&store, with_content).await), Some("text".into()));
}

pub async fn a_page_of_large_contents_ends_early(store: TestStore) {
    // Contents that do not compress much, below the largest content also where they are encoded.
    let size = bounds::DOCUMENT_BYTES - 1024;
    let full = bounds::DOCUMENT_PAGE_BYTES.div_ceil(size);
    for number in 0..full + 2 {
        let content: Vec<u8> = (0..size).map(|at| u8::try_from((at * (number + 7)) % 251).unwrap_or(0)).collect();
        store.write(put(PutDocument::new(name("notes"), format!("{number:02}"), content))).await;
    }
    let all = DocumentQuery { with_content: true, ..of(DocumentSelection::KeyPrefix(String::new())) };
    let first = page(&store, all.clone()).await;
    assert!((full..full + 2).contains(&first.documents.len()), "{}", first.documents.len());
    assert!(first.documents.iter().all(|record| record.content.as_ref().is_some_and(|content| content.len() == size)));
    let rest = page(&store, DocumentQuery { after: first.next, ..all }).await;
    assert_eq!((first.documents.len() + rest.documents.len(), rest.next), (full + 2, None));
}

pub async fn a_key_out_of_its_bounds_is_refused(store: TestStore) {
    let longest = "k".repeat(bounds::DOCUMENT_KEY_BYTES);
    assert_eq!(store.write(put(document(&longest, "text"))).await, stored(1));
    for key in ["", &format!("{longest}k")] {
        let text = store.invalid(put(document(key, "text"))).await;
        assert!(text.contains("may have 1 to 512"), "{text}");
        store.invalid(delete(key, ExpectedVersion::Any)).await;
    }
}

pub async fn a_content_beyond_its_bound_is_refused(store: TestStore) {
    let content = vec![7; bounds::DOCUMENT_BYTES + 1024];
    let text = store.invalid(put(PutDocument::new(name("notes"), "a", content))).await;
    assert!(text.contains("may have 1048576"), "{text}");
    assert_eq!(find(&store, "a").await, None);
}

pub async fn a_content_type_out_of_its_bounds_is_refused(store: TestStore) {
    let longest = "t".repeat(bounds::CONTENT_TYPE_BYTES);
    for content_type in [String::new(), format!("{longest}t"), "text\n".to_owned(), "té".to_owned()] {
        store.invalid(put(PutDocument { content_type, ..document("a", "text") })).await;
    }
    assert_eq!(store.write(put(PutDocument { content_type: longest, ..document("a", "text") })).await, stored(1));
}

pub async fn index_values_out_of_their_bounds_are_refused(store: TestStore) {
    let longest = "v".repeat(bounds::DOCUMENT_INDEX_BYTES);
    let longer = format!("{longest}v");
    store.invalid(put(indexed("a", &["1", "2", "3", "4", "5"]))).await;
    store.invalid(put(indexed("a", &["1", &longer]))).await;
    assert_eq!(store.write(put(indexed("a", &["1", "2", "3", &longest]))).await, stored(1));
}

pub async fn any_character_may_be_in_a_key_and_a_value(store: TestStore) {
    let odd = "\u{0}\u{1f600}%_'\\\u{10ffff}";
    store.write(put(indexed(odd, &[odd]))).await;
    assert_eq!(find(&store, odd).await.map(|record| record.index), Some(vec![odd.to_owned()]));
    assert_eq!(keys(&page(&store, of(value(0, odd))).await), [odd]);
}

pub async fn a_store_takes_a_bounded_number_of_collections(store: TestStore) {
    let in_collection = |number: u64| put(PutDocument::new(name(&format!("c{number}")), "a", "text"));
    let most = bounds::DOCUMENT_COLLECTIONS;
    assert!(matches!(store.write(Write::All((0..most).map(in_collection).collect())).await, Outcome::All(_)));
    let text = store.invalid(in_collection(most)).await;
    assert!(text.contains("1000 collections"), "{text}");
    let emptied = Write::DeleteDocument { collection: name("c0"), key: "a".into(), expect: ExpectedVersion::Any };
    assert_eq!(store.apply(vec![emptied, in_collection(most)]).await.get(1), Some(&stored(1)));
}

pub async fn documents_survive_a_restart(mut store: TestStore) {
    put_all(&store, vec![indexed("a", &["x"]), document("b", "one"), document("b", "two")]).await;
    let before = (find(&store, "a").await, find(&store, "b").await);
    store.reopen().await;
    assert_eq!((find(&store, "a").await, find(&store, "b").await), before);
    assert_eq!(store.write(put(document("b", "three"))).await, stored(3));
}

pub async fn a_document_hints_at_no_work(store: TestStore) {
    let mut changes = store.inner().changes();
    let before = changes.hint();
    store.apply(vec![put(document("a", "one")), delete("a", ExpectedVersion::Any)]).await;
    assert_eq!(changes.hint(), before);
}
