# frozen_string_literal: true

# A worker for steps of workflows, which the suite of kills kills and replaces by a new version.

require_relative "../lib/onward"

VERSION = ENV.fetch("STEPS_VERSION", "1")

# Returns a result that states which program computed it, after a few milliseconds.
def stated(number)
  sleep(0.005)
  { number: number, by: "ruby #{VERSION}" }
end

app = Onward::Worker.new(slots: 4)
app.handler("square") { |task| stated(task["number"]**2) }
app.handler("product") { |task| stated(task["numbers"].reduce(:*)) }
# Ends the process of the worker in the middle of its work.
app.handler("poison", retry: 1) { Process.exit!(70) }
app.handler("cube") { |task| stated(task["number"]**3) } if VERSION == "2"

app.run
