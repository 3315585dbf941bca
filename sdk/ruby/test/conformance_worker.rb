# frozen_string_literal: true

# The worker that the scripted gateway of sdk/conformance runs. README.md there lists its kinds.

require_relative "../lib/onward"

app = Onward::Worker.new(
  name: "conformance",
  slots: Integer(ENV.fetch("CONFORMANCE_SLOTS", "4")),
  prefetch: Integer(ENV.fetch("CONFORMANCE_PREFETCH", "0")),
  grace: Float(ENV.fetch("CONFORMANCE_GRACE", "20"))
)
lock = Mutex.new
opened = ConditionVariable.new
open = false
pass = lambda do
  lock.synchronize { opened.wait(lock, 60) until open }
end
numbers = lambda do |object|
  object.each_value { |number| raise TypeError, "#{number.inspect} is no integer" unless number.is_a?(Integer) }
end

# Ruby has one sort of handler, which runs on a thread, so the async kinds are the same as the others.
%w[echo echo_async].each { |kind| app.handler(kind, input: :bytes) { |payload| payload } }
app.handler("typed", input: numbers, retry: { attempts: 3 }, timeout: 60, limit: 1) { |object| object.values.sum }
app.handler("fail") { |message| raise Onward::Fail.new(message, details: { from: "fail" }) }
app.handler("crash") { |message| raise KeyError, message }
app.handler("retry_later") { |counts| raise Onward::RetryLater.new("busy", after: 1.5, counts: counts) }
%w[hold hold_async].each { |kind| app.handler(kind) { |_, ctx| ctx.sleep(60) } }
app.handler("alone", limit: 1) { pass.call && nil }
app.handler("gate") do
  pass.call
  "passed"
end
app.handler("open") do
  lock.synchronize do
    open = true
    opened.broadcast
  end
  nil
end
app.handler("report") do |_, ctx|
  before = ctx.last_checkpoint
  ctx.progress(0.5, "half")
  ctx.checkpoint({ at: ctx.attempt })
  before
end
app.handler("big") { |size| ("x" * size).b }
app.handler("children") do |_, ctx|
  next ctx.last_checkpoint if ctx.resumed?

  ctx.spawn("echo", "tea", key: "tea")
  ctx.spawn(Onward::NewTask.new("echo", "cup", priority: 200))
  ctx.await_children("both")
end
app.handler("later") { |_, ctx| ctx.later(within: 60) }
app.handler("move") { |queue, ctx| ctx.move(queue) }
app.handler("submit") { |key, ctx| ctx.submit("echo", "hi", key: key).task }
app.handler("ask") { |task, ctx| ctx.result(task, wait: 5).value }
app.handler("print") do |lines|
  lines.times { |line| puts "not the protocol #{line}" }
  "printed"
end
app.decision("route", choices: %w[auto manager]) { |step| step.input["amount"] < 1000 ? "auto" : "manager" }
app.batch("batch", every: 2) do |positions|
  positions.partial ||= 0
  positions.each { |position| positions.partial += position }
end

app.run
