INSERT INTO statistics (sub_queue, state, ended, kept, attempts, wait, run, run_maximum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (sub_queue, state) DO UPDATE SET
    ended = ended + excluded.ended,
    kept = kept + excluded.kept,
    attempts = attempts + excluded.attempts,
    wait = wait + excluded.wait,
    run = run + excluded.run,
    run_maximum = max(run_maximum, excluded.run_maximum)
