SELECT e.task, e.number, e.attempt, e.at, e.message
FROM rarray(?) a CROSS JOIN attempt_error e ON e.task = a.value
