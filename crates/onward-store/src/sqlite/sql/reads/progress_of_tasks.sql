SELECT p.task, p.fraction, p.message, p.at, p.done, p.total
FROM rarray(?) a CROSS JOIN progress p ON p.task = a.value
