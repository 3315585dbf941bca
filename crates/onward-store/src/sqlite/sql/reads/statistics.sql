SELECT k.name, s.state, s.ended, s.attempts, s.wait, s.run, s.run_maximum
FROM statistics s JOIN sub_queue n ON n.id = s.sub_queue JOIN kind k ON k.id = n.kind
WHERE s.ended > 0
