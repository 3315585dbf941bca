SELECT p.task, p.fraction, p.message, p.at
FROM rarray(?) a CROSS JOIN progress p ON p.task = a.value
