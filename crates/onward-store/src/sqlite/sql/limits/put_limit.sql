INSERT INTO task_limit (scope, name, concurrency, rate_tasks, rate_per, rate_burst, running, full_at, weight, minimum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (scope, name) DO UPDATE SET concurrency = excluded.concurrency, rate_tasks = excluded.rate_tasks,
    rate_per = excluded.rate_per, rate_burst = excluded.rate_burst, running = excluded.running, full_at = excluded.full_at,
    weight = excluded.weight, minimum = excluded.minimum
