-- Tasks that may have tags, from a number on.
SELECT id, options FROM task WHERE id > ?1 AND instr(options, '"tags"') > 0
UNION ALL
SELECT id, options FROM history WHERE id > ?1 AND instr(options, '"tags"') > 0
