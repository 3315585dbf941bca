-- Up to this task, tags are in `tag` and `tagged`; those of later ones follow in bulk, and are in their rows until then.
INSERT INTO meta (name, value) VALUES ('tagged_to', max(
    coalesce((SELECT max(id) FROM task), 0), coalesce((SELECT next_task FROM log ORDER BY id DESC LIMIT 1), 1) - 1
));
