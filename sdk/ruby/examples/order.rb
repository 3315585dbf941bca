# frozen_string_literal: true

# The handlers of an order's saga, `order.yaml`: reserve, charge and ship, or undo what was done.
#
#     onward work --app "ruby order.rb" &
#     onward run order.yaml --input order=7 --input amount=40
#
# Each effect is an entry in a file under the key that the workflow states, so that an attempt that
# runs twice has its effect once. A real shop calls its payment service with the same key.

require "onward"
require "pstore"

ledger = PStore.new(ENV.fetch("LEDGER", "ledger.pstore"), true)

app = Onward::Worker.new(name: "orders")

# Opens the ledger for one attempt; its writes are kept if the handler succeeds.
app.middleware do |ctx, call|
  ledger.transaction do
    ctx.local[:effects] = (ledger[:effects] ||= {})
    call.call
  end
end

# Writes an effect, or nothing if an earlier attempt did.
record = lambda do |ctx, key, what, amount = 0|
  ctx.local[:effects][key] ||= { what: what, amount: amount }
end

app.handler("stock.reserve", retry: 5) do |task, ctx|
  reservation = "reservation-#{task.fetch('order')}"
  record.call(ctx, reservation, "reserved")
  { id: reservation }
end

app.handler("stock.release", retry: 20) do |task, ctx|
  # Without an id, the reservation never happened.
  record.call(ctx, "#{task['reservation']}-released", "released") if task["reservation"]
end

app.handler("card.charge", retry: 5, timeout: 30) do |task, ctx|
  amount = task.fetch("amount")
  raise Onward::Fail, "the amount is #{amount}; it must be above 0" unless amount.positive?

  record.call(ctx, task.fetch("once"), "charged", amount)
  { charge: task.fetch("once"), amount: amount }
end

app.handler("card.refund", retry: 20, timeout: 30) do |task, ctx|
  record.call(ctx, "#{task.fetch('once')}-refund", "refunded")
end

app.handler("parcels.ship", retry: 5) do |_, ctx|
  parcel = "parcel-#{ctx.step.input.fetch('order')}"
  record.call(ctx, parcel, "shipped")
  { parcel: parcel }
end

app.run
