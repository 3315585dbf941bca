# frozen_string_literal: true

require_relative "helper"

# Handlers, contexts and ends, by the test harness.
class HandlersTest < Minitest::Test
  include Helpers

  # A handler that is a class.
  class Upper < Onward::Handler
    kind "upper"
    options retry: 3, limit: 2

    def call(text) = text.upcase
  end

  # A handler that inherits its options.
  class Lower < Upper
    kind "lower"
    options limit: 5

    def call(text, ctx) = "#{text.downcase} #{ctx.attempt}"
  end

  def test_handlers_take_fewer_arguments
    handlers = [-> { 1 }, ->(_) { 1 }, ->(_, _) { 1 }, proc { 1 }, Class.new { def call = 1 }, method(:one)]
    handlers.each do |callable|
      app = worker
      app.handler("it", callable)
      assert_equal 1, Onward::Testing.run(app, "it", 0).value
    end
  end

  def one(_) = 1

  def test_a_handler_of_three_arguments_is_refused
    error = assert_raises(ArgumentError) { worker.handler("it", ->(_, _, _) {}) }
    assert_includes error.message, "takes 3 arguments"
  end

  def test_classes_have_kinds_and_options
    app = worker
    app.register(Upper)
    app.register(Lower)
    assert_equal "A", Onward::Testing.run(app, "upper", "a").value
    assert_equal "a 2", Onward::Testing.run(app, "lower", "A", attempt: 2).value
    assert_equal [2, 5], %w[upper lower].map { |kind| app.entry(kind).header[:limit] }
    assert_equal 3, app.entry("lower").header[:retry][:attempts]
  end

  def test_a_kind_has_one_handler
    app = worker
    app.handler("it") { nil }
    assert_includes assert_raises(ArgumentError) { app.handler(:it) { nil } }.message, "already"
  end

  def test_options_reach_hello
    app = worker
    app.handler("it", limit: 3, timeout: 1.5, heartbeat: 2, retry: { attempts: 2, backoff: "linear", initial: 0.5 }) do
      nil
    end
    assert_equal(
      { limit: 3, retry: { attempts: 2, backoff: "linear", initial_ms: 500, increment_ms: 500, maximum_ms: 600_000 },
        timeout_ms: 1500, heartbeat_ms: 2000 },
      app.entry("it").header
    )
  end

  def test_an_option_out_of_its_range_is_refused
    [{ limit: 0 }, { retry: 0 }, { retry: { backoff: "magic" } }, { timeout: 0 }, { heartbeat: -1 },
     { retry: { factor: 0.5 } }, { unknown: 1 }].each do |options|
      assert_raises(ArgumentError, options.inspect) { worker.handler("it", **options) { nil } }
    end
  end

  def test_fail_and_retry_later
    outcome = run_handler { raise Onward::Fail.new("no", details: { a: 1 }) }
    assert_equal({ outcome: "fail", class: "Fail", message: "no", retry: false, details: { "a" => 1 } },
                 outcome.fields.except(:task, :fence))
    outcome = run_handler { raise Onward::RetryLater.new("busy", after: 1.5, counts: false) }
    assert_equal [1500, false], outcome.fields.values_at(:retry_after_ms, :counts)
    refute outcome.fields.key?(:retry)
  end

  def test_a_failure_is_cut_to_its_bounds
    error = Class.new(StandardError) { def message = "ü\xff" * 9_000 }
    outcome = run_handler { raise error }
    assert_operator outcome.fields[:message].bytesize, :<=, 8_192
    assert_predicate outcome.fields[:message], :valid_encoding?
    outcome = run_handler { raise Onward::Fail.new("no", details: "x" * 5_000) }
    assert_includes outcome.fields[:details][:omitted], "more than 4096"
  end

  def test_a_failure_has_its_backtrace
    assert_includes run_handler { raise "no" }.fields[:details][:backtrace], "handlers_test.rb"
  end

  def test_other_ends
    assert_equal({ outcome: "later", within_ms: 60_000 },
                 run_handler { |_, ctx| ctx.later(within: 60) }.fields.except(:task, :fence))
    assert_equal "slow", run_handler { |_, ctx| ctx.move("slow") }.fields[:queue]
    assert_equal "given_up", run_handler { |_, ctx| ctx.release }.fields[:why]
    assert_equal "fail", run_handler { |_, ctx| ctx.await_children(1, fail_fast: true) }.fields[:on_failure]
  end

  def test_children_are_spawned_with_the_end
    outcome = run_handler do |_, ctx|
      ctx.spawn("pack", { item: 1 }, key: "k", priority: 200, delay: 1, tags: { a: 1 })
      ctx.await_children
    end
    child = outcome.fields[:spawn].first
    assert_equal ["pack", "k", 200, 1000, { "a" => "1" }], child.values_at(:kind, :key, :priority, :delay_ms, :tags)
    assert_equal({ "item" => 1 }, Onward::Payload.decode(outcome.spawned.first.encoded_payload))
  end

  def test_a_failed_attempt_spawns_nothing
    outcome = run_handler do |_, ctx|
      ctx.spawn("pack")
      raise "no"
    end
    refute outcome.fields.key?(:spawn)
  end

  def test_too_many_children_are_refused
    outcome = run_handler { |_, ctx| 1_025.times { ctx.spawn("pack") } }
    assert_includes outcome.error.message, "at most 1024"
    outcome = run_handler { |_, ctx| 1_000.times { |n| ctx.spawn("pack", n, key: n.to_s * 40) } }
    assert_equal "SpawnTooLarge", outcome.fields[:class]
  end

  def test_options_of_a_new_task_are_checked
    [{ priority: 256 }, { key: "" }, { key: "k" * 513 }, { ttl: 0 }, { queue: "" }, { tags: (0..32).to_h { [_1, 1] } },
     { key: "k", on_duplicate: "maybe" }, { keep_key: 5 }, { to: "x" }].each do |options|
      assert_raises(ArgumentError, options.inspect) { Onward::NewTask.new("mail", nil, **options) }
    end
  end

  def test_submit_returns_the_task
    outcome = run_handler { |_, ctx| ctx.submit("mail", { to: 1 }, key: "k", child: true).task }
    assert_equal "1", outcome.value
    assert_equal %w[mail k], outcome.submitted.first.values_at(:kind, :key)
  end

  def test_a_missing_feature_is_refused
    outcome = run_handler(features: []) { |_, ctx| ctx.submit("mail") }
    assert_equal "unsupported", outcome.error.code
    outcome = run_handler(features: ["submit"]) { |_, ctx| ctx.submit("mail", headers: { a: 1 }) }
    assert_equal "unsupported", outcome.error.code
  end

  def test_children_are_read_page_by_page
    pages = lambda do |header, _|
      number = header[:after] ? 2 : 1
      child = { task: number.to_s, kind: "pack", state: "completed", payload: 0 }
      [{ children: [child], next: number == 1 ? "1" : nil }, [number.to_s.b]]
    end
    assert_equal [1, 2], run_handler(answer: pages) { |_, ctx| ctx.children.map(&:value) }.value
  end

  def test_items_are_read
    answer = ->(_, _) { [{ items: [{ task: "1", payload: 0 }, { task: "2" }] }, ["a".b]] }
    assert_equal ["a", ""], run_handler(answer: answer) { |_, ctx| ctx.items }.value
  end

  def test_progress_is_merged_and_checked
    outcome = run_handler do |_, ctx|
      ctx.progress(0.5, "half")
      ctx.progress(done: 1, total: 2)
      ctx.progress(2)
    end
    assert_equal({ fraction: 0.5, message: "half", done: 1, total: 2 }, outcome.progress.last)
    assert_includes outcome.error.message, "from 0 to 1"
  end

  def test_checkpoints_are_kept
    outcome = run_handler(checkpoint: { at: 1 }) do |_, ctx|
      before = ctx.last_checkpoint
      ctx.checkpoint({ at: 2 })
      [before, ctx.last_checkpoint(symbols: true)]
    end
    assert_equal [{ "at" => 1 }, { "at" => 2 }], outcome.value
    assert_equal [{ "at" => 2 }], outcome.checkpoints
    outcome = run_handler(max_payload: 5) { |_, ctx| ctx.checkpoint("x" * 9) }
    assert_includes outcome.error.message, "more than 5"
  end

  def test_a_stop_ends_a_sleep
    { "cancelled" => "cancelled", "preempted" => "release", "timeout" => "fail", "lost" => "lost",
      "stopping" => "release" }.each do |why, outcome|
      assert_equal outcome, run_handler(stop: why, stop_after: 0.02) { |_, ctx| ctx.sleep(30) }.outcome, why
    end
  end

  def test_a_result_after_a_stop_counts_unless_the_lease_is_lost
    assert_equal "ok", run_handler(stop: "cancelled") { 1 }.outcome
    assert_equal "lost", run_handler(stop: "lost") { 1 }.outcome
  end

  def test_callbacks_of_a_stop_run_once
    calls = []
    run_handler(stop: "cancelled") do |_, ctx|
      ctx.on_cancel { calls << :first }
      ctx.on_cancel { raise "no" }
      ctx.request_stop("lost")
    end
    assert_equal [:first], calls
  end

  def test_middleware_runs_around_the_handler
    app = worker
    seen = []
    app.middleware do |ctx, call|
      seen << "before #{ctx.kind}"
      call.call.upcase
    ensure
      seen << "after"
    end
    app.middleware { |ctx, call| (ctx.local[:x] = "inner") && call.call }
    app.handler("it") { |_, ctx| ctx.local[:x] }
    assert_equal "INNER", Onward::Testing.run(app, "it").value
    assert_equal ["before it", "after"], seen
  end

  def test_decisions_choose_among_their_choices
    app = worker
    app.decision("route", choices: %w[auto manager], &:input)
    chosen = ->(input) { Onward::Testing.run(app, "route", { input: input }) }
    assert_equal({ "chosen" => ["auto"] }, chosen.call("auto").value)
    assert_equal({ "chosen" => %w[auto manager] }, chosen.call(%w[auto manager]).value)
    assert_equal({ "chosen" => [] }, chosen.call(nil).value)
    assert_includes chosen.call("other").error.message, "its choices are auto, manager"
  end

  def test_results_of_steps_are_found_by_name
    payload = { input: 1, results: { charge: { id: 7 } } }
    assert_equal 7, run_handler(payload) { |_, ctx| ctx.step_result(:charge)["id"] }.value
    assert_includes run_handler(payload) { |_, ctx| ctx.step_result("ship") }.error.message, "charge"
  end

  def batch(payload, **options, &)
    app = worker
    app.batch("it", every: 2, &)
    Onward::Testing.run(app, "it", payload, **options)
  end

  def test_a_batch_continues_after_its_checkpoint
    sum = ->(positions) { positions.each { |at| positions.partial = (positions.partial || 0) + at } }
    outcome = batch({ from: 0, to: 5 }, &sum)
    assert_equal 10, outcome.value
    assert_equal [{ "position" => 2, "partial" => 1 }, { "position" => 4, "partial" => 6 }], outcome.checkpoints
    assert_equal 10, batch({ cursor: { from: 0, to: 5 } }, checkpoint: { position: 4, partial: 6 }, &sum).value
  end

  def test_a_batch_stops_when_it_is_asked_to
    seen = []
    outcome = batch({ from: 0, to: 5 }, stop: "cancelled") { |positions| positions.each { |at| seen << at } }
    assert_equal "cancelled", outcome.outcome
    assert_empty seen
  end

  def test_a_batch_without_a_cursor_fails
    [{ from: 5, to: 1 }, { from: 0 }, [1], { cursor: 7 }].each do |payload|
      assert_equal false, batch(payload) { flunk("the handler ran") }.fields[:retry], payload.inspect
    end
  end

  def test_lines_of_the_task_name_it
    out = StringIO.new
    app = Onward::Worker.new(logger: Logger.new(out))
    app.handler("it") { |_, ctx| ctx.logger.info { "hello" } && nil }
    Onward::Testing.run(app, "it")
    assert_includes out.string, "task 1 it attempt 1: hello"
  end

  def test_state_is_shared
    app = worker(state: { n: 1 })
    app.handler("it") { |_, ctx| ctx.state[:n] }
    assert_equal 1, Onward::Testing.run(app, "it").value
  end
end
