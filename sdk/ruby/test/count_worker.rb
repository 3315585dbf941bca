# frozen_string_literal: true

# A worker that writes down which process it is, for tests that kill it.

require_relative "../lib/onward"

app = Onward::Worker.new(slots: 4)

app.handler("count", retry: 100) do |number, ctx|
  sleep(0.003)
  ctx.progress(1.0)
  number
end

app.handler("hold") do |_, ctx|
  File.write(ENV.fetch("HOLD_FILE"), "")
  ctx.sleep(60)
end

File.write(ENV.fetch("PID_FILE"), Process.pid)
app.run
