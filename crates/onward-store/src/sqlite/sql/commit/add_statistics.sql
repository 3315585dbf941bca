INSERT INTO statistics (sub_queue, state, ended, in_history, attempts, wait, run, run_maximum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (sub_queue, state) DO UPDATE SET
    ended = ended + excluded.ended,
    in_history = in_history + excluded.in_history,
    attempts = attempts + excluded.attempts,
    wait = wait + excluded.wait,
    run = run + excluded.run,
    run_maximum = max(run_maximum, excluded.run_maximum)
