//! Templates of workflows that a store keeps.

use std::time::Duration;

use onward::Engine;
use onward::workflow::library::{TemplateQuery, TemplateRecord};
use onward::workflow::template::{TemplateFile, TemplateHash};
use onward_store::{ExpectedVersion, Name, Write};

use crate::fixture::{SECOND, TestStore};

on_every_store! {
    a_template_is_found_by_its_name_its_label_and_its_hash,
    a_template_that_was_not_put_is_not_found,
    the_content_that_was_put_last_is_the_newest,
    a_content_that_is_put_again_keeps_its_record_and_becomes_the_newest,
    a_label_belongs_to_one_content,
    a_label_of_one_name_is_free_for_another,
    several_engines_that_put_one_template_all_succeed,
    a_content_without_a_version_has_digits_of_its_hash_as_its_label,
    a_stored_template_is_read_with_its_environments,
    templates_are_listed_by_name_in_pages,
    the_difference_of_two_templates_has_the_lines_that_differ,
    a_difference_to_a_template_that_is_not_stored_is_not_found,
    a_damaged_template_is_reported,
    a_template_that_nothing_uses_is_removed,
    a_young_template_is_not_removed,
}

fn file(name: &str, version: &str, step: &str) -> TemplateFile {
    let text = format!("name: {name}\nversion: '{version}'\nsteps: {{first: {{task: {step}}}}}\n");
    TemplateFile::read("test.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

async fn put(engine: &Engine, name: &str, version: &str, step: &str) -> TemplateHash {
    engine.put_template(&file(name, version, step)).await.unwrap()
}

async fn newest(engine: &Engine, name: &str) -> Option<TemplateHash> {
    engine.template(name, None).await.unwrap().map(|stored| stored.record.hash)
}

/// Shows: W1
async fn a_template_is_found_by_its_name_its_label_and_its_hash(store: TestStore) {
    let engine = store.engine().await;
    let hash = put(&engine, "order", "1", "mail").await;
    let stored = engine.template_by_hash(hash).await.unwrap().unwrap();
    assert_eq!((stored.reference(), stored.record.is_newest), ("order@1".to_owned(), true));
    assert_eq!(stored.canonical, file("order", "1", "mail").canonical());
    assert_eq!(engine.template("order", None).await.unwrap(), Some(stored.clone()));
    assert_eq!(engine.template("order", Some("1")).await.unwrap(), Some(stored));
}

async fn a_template_that_was_not_put_is_not_found(store: TestStore) {
    let engine = store.engine().await;
    put(&engine, "order", "1", "mail").await;
    assert_eq!(engine.template("orders", None).await.unwrap(), None);
    assert_eq!(engine.template("order", Some("2")).await.unwrap(), None);
    let other = file("order", "2", "mail").hash();
    assert_eq!(engine.template_by_hash(other).await.unwrap(), None);
}

async fn the_content_that_was_put_last_is_the_newest(store: TestStore) {
    let engine = store.engine().await;
    let one = put(&engine, "order", "1", "mail").await;
    let two = put(&engine, "order", "2", "print").await;
    assert_eq!(newest(&engine, "order").await, Some(two));
    let stored = engine.template("order", Some("1")).await.unwrap().unwrap();
    assert_eq!((stored.record.hash, stored.record.is_newest), (one, false));
}

async fn a_content_that_is_put_again_keeps_its_record_and_becomes_the_newest(store: TestStore) {
    let engine = store.engine().await;
    let one = put(&engine, "order", "1", "mail").await;
    let record = |stored: Option<_>| stored.map(|stored: onward::workflow::library::StoredTemplate| stored.record);
    let before = record(engine.template_by_hash(one).await.unwrap());
    put(&engine, "order", "2", "print").await;
    store.clock.advance(SECOND);
    assert_eq!(put(&engine, "order", "1", "mail").await, one);
    assert_eq!(record(engine.template("order", None).await.unwrap()), before);
}

async fn a_label_belongs_to_one_content(store: TestStore) {
    let engine = store.engine().await;
    let one = put(&engine, "order", "1", "mail").await;
    let other = file("order", "1", "print");
    let error = engine.put_template(&other).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    let text = error.to_string();
    assert!(text.contains(&one.to_string()) && text.contains(&other.hash().to_string()), "{text}");
    assert_eq!(engine.template_by_hash(other.hash()).await.unwrap(), None);
    assert_eq!(newest(&engine, "order").await, Some(one));
}

async fn a_label_of_one_name_is_free_for_another(store: TestStore) {
    let engine = store.engine().await;
    let (one, other) = (put(&engine, "order", "1", "mail").await, put(&engine, "orders", "1", "mail").await);
    assert_eq!((newest(&engine, "order").await, newest(&engine, "orders").await), (Some(one), Some(other)));
}

async fn several_engines_that_put_one_template_all_succeed(store: TestStore) {
    let (one, other) = (store.engine().await, store.engine().await);
    let file = file("order", "1", "mail");
    let (first, second) = tokio::join!(one.put_template(&file), other.put_template(&file));
    assert_eq!((first.unwrap(), second.unwrap()), (file.hash(), file.hash()));
    assert_eq!(one.templates(TemplateQuery::default()).await.unwrap().templates.len(), 1);
}

async fn a_content_without_a_version_has_digits_of_its_hash_as_its_label(store: TestStore) {
    let engine = store.engine().await;
    let file = TemplateFile::read("order.yaml", "steps: [echo]\n").unwrap();
    engine.put_template(&file).await.unwrap();
    let label = file.hash().to_string().chars().take(12).collect::<String>();
    assert_eq!(
        engine.template("order", Some(&label)).await.unwrap().map(|stored| stored.record.hash),
        Some(file.hash())
    );
}

/// Shows: W1
async fn a_stored_template_is_read_with_its_environments(store: TestStore) {
    let engine = store.engine().await;
    let text = "name: order\ntimeout: 1h\nsteps: [echo]\nenvironments: {test: {timeout: 1m}}\n";
    let file = TemplateFile::read("order.yaml", text).unwrap();
    engine.put_template(&file).await.unwrap();
    let stored = engine.template("order", None).await.unwrap().unwrap().read().unwrap();
    assert_eq!((stored.hash(), stored.environments().collect::<Vec<_>>()), (file.hash(), vec!["test"]));
    let timeout = |file: &TemplateFile| file.in_environment("test").map(|template| template.timeout);
    assert_eq!((timeout(&stored), timeout(&file)), (Some(Some(60 * SECOND)), Some(Some(60 * SECOND))));
}

async fn templates_are_listed_by_name_in_pages(store: TestStore) {
    let engine = store.engine().await;
    for (name, version) in [("b", "1"), ("a", "1"), ("b", "2"), ("c", "1")] {
        put(&engine, name, version, "mail").await;
    }
    let (mut query, mut listed) = (TemplateQuery { limit: 3, ..TemplateQuery::default() }, Vec::new());
    loop {
        let page = engine.templates(query.clone()).await.unwrap();
        listed.extend(page.templates);
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let names: Vec<&str> = listed.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "b", "c"]);
    let newest = |record: &&TemplateRecord| record.is_newest;
    let newest: Vec<_> = listed.iter().filter(newest).map(|record| (record.name.as_str(), &*record.label)).collect();
    assert_eq!(newest, [("a", "1"), ("b", "2"), ("c", "1")]);
}

async fn the_difference_of_two_templates_has_the_lines_that_differ(store: TestStore) {
    let engine = store.engine().await;
    let (one, two) = (put(&engine, "order", "1", "mail").await, put(&engine, "order", "2", "print").await);
    let diff = engine.template_diff(one, two).await.unwrap();
    let changed: Vec<&str> = diff.lines().filter(|line| line.starts_with(['-', '+'])).map(str::trim_end).collect();
    let expected = [
        "--- order@1",
        "+++ order@2",
        "-      \"task\": \"mail\"",
        "+      \"task\": \"print\"",
        "-  \"version\": \"1\"",
        "+  \"version\": \"2\"",
    ];
    assert_eq!(changed, expected, "{diff}");
    assert_eq!(engine.template_diff(one, one).await.unwrap(), "");
}

async fn a_difference_to_a_template_that_is_not_stored_is_not_found(store: TestStore) {
    let engine = store.engine().await;
    let one = put(&engine, "order", "1", "mail").await;
    let error = engine.template_diff(one, file("order", "2", "mail").hash()).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

/// Another program may write to the collection of the templates.
async fn a_damaged_template_is_reported(store: TestStore) {
    let engine = store.engine().await;
    let hash = put(&engine, "order", "1", "mail").await;
    let mut document = onward_store::PutDocument::new(Name::new("onward.templates").unwrap(), hash.to_string(), "{}");
    document.expect = ExpectedVersion::Version(1);
    store.shared().apply(vec![Write::PutDocument(Box::new(document))]).await.unwrap();
    let error = engine.template_by_hash(hash).await.unwrap_err();
    assert!(error.is_corrupt(), "{error}");
}

/// Shows: W1
async fn a_template_that_nothing_uses_is_removed(store: TestStore) {
    let engine = store.engine().await;
    let used = put(&engine, "order", "1", "mail").await;
    let unused = put(&engine, "order", "2", "call").await;
    let newest = put(&engine, "order", "3", "write").await;
    engine.start_run("order").version("1").await.unwrap();
    let removed = engine.prune_templates(Duration::ZERO).await.unwrap();
    assert_eq!(removed.iter().map(|record| record.hash).collect::<Vec<_>>(), [unused]);
    assert_eq!(engine.template_by_hash(unused).await.unwrap(), None);
    assert_eq!(engine.template("order", Some("2")).await.unwrap(), None);
    for (label, hash) in [("1", used), ("3", newest)] {
        assert_eq!(engine.template("order", Some(label)).await.unwrap().unwrap().record.hash, hash);
    }
}

/// Shows: W1
async fn a_young_template_is_not_removed(store: TestStore) {
    let engine = store.engine().await;
    put(&engine, "order", "1", "mail").await;
    put(&engine, "order", "2", "call").await;
    assert_eq!(engine.prune_templates(SECOND).await.unwrap(), []);
    store.clock.advance(SECOND);
    assert_eq!(engine.unused_templates(SECOND).await.unwrap().len(), 1);
}
