SELECT first, last, session, claim, started_at, expires_at FROM lease
WHERE first = (SELECT max(first) FROM lease WHERE first <= ?1) AND last >= ?1
