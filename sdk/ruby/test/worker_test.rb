# frozen_string_literal: true

require "fileutils"
require "stringio"
require_relative "fake_gateway"

# Workers as they run: addresses, options, forks, signals, busy handlers.
class WorkerTest < Minitest::Test
  include Helpers

  Address = Onward::Protocol::Address

  def teardown
    @app&.stop
    @thread&.join(10)
    @gateway&.close
  end

  # Runs a worker on a thread and returns the gateway to which it is connected.
  def connect(welcome: {}, **options)
    @gateway = FakeGateway.new
    @app = worker(gateway: @gateway.address, **options)
    yield @app
    @thread = Thread.new { @app.serve }
    @thread.report_on_exception = false
    @hello = @gateway.accept(welcome)
    @gateway
  end

  # Returns the error that ends the run.
  def ending
    thread = @thread
    @thread = nil
    assert_raises(Onward::Error) { thread.value }
  end

  # Drains the worker as a gateway does, and waits for its end.
  def leave
    @app.stop
    @gateway.read("bye")
    @gateway.close_connection
    @thread.join(10)
  end

  def test_addresses
    { "child" => "child", "ipc:///run/o.sock" => "ipc:///run/o.sock",
      "tcp://127.0.0.1:5555" => "tcp://127.0.0.1:5555",
      "tcp://[::1]:5555" => "tcp://[::1]:5555", "tcp://localhost:1" => "tcp://localhost:1",
      "http://[::1]:7070" => "http://[::1]:7070",
      "https://a.example/o/" => "https://a.example/o" }.each do |text, address|
      assert_equal address, Address.parse(text, {}).to_s
      assert_equal address, Address.parse(nil, { "ONWARD_GATEWAY" => text }).to_s
    end
    assert_equal [3, 7], [{}, { "ONWARD_FD" => "7" }].map { |environment| Address.parse("child", environment).place }
  end

  def test_a_wrong_address_names_the_remedy
    { nil => "onward work --app", "ftp://localhost" => "child, ipc://PATH, tcp://HOST:PORT or https",
      "http://a.example" => "use https://", "https://a.example?key=1" => "https://HOST",
      "tcp://127.0.0.1" => "tcp://HOST:PORT", "tcp://127.0.0.1:0" => "tcp://HOST:PORT", "tcp://10.0.0.1:5" => "SSH",
      "tcp://127.0.0.1.example.org:5" => "SSH", "ipc://" => "ipc://PATH" }.each do |text, remedy|
      assert_includes assert_raises(ArgumentError, text.inspect) { Address.parse(text, {}) }.message, remedy
    end
  end

  def test_options_out_of_their_range_are_refused
    [{ slots: 0 }, { slots: 1025 }, { slots: 1000, prefetch: 25 }, { prefetch: -1 }, { grace: -1 },
     { name: "x" * 129 }].each do |options|
      assert_raises(ArgumentError, options.inspect) { worker(**options) }
    end
  end

  def with_slots(text)
    before = ENV.fetch("ONWARD_SLOTS", nil)
    ENV["ONWARD_SLOTS"] = text
    yield
  ensure
    ENV["ONWARD_SLOTS"] = before
  end

  def test_slots_come_from_the_gateway
    with_slots("3") do
      connect { |app| app.handler("it") { nil } }
      assert_equal [3, 3], [@hello["slots"], @gateway.credit]
      leave
    end
    error = assert_raises(ArgumentError) { with_slots("many") { worker } }
    assert_includes error.message, "ONWARD_SLOTS is `many`"
  end

  def test_a_worker_without_handlers_does_not_start
    assert_includes assert_raises(ArgumentError) { worker(gateway: "child").serve }.message, "has no handler"
  end

  def test_a_descriptor_that_is_no_socket_is_refused
    app = worker(gateway: "child")
    app.handler("it") { nil }
    reader, writer = IO.pipe
    ENV["ONWARD_FD"] = reader.fileno.to_s
    reader.autoclose = false # the socket that is made of it owns it
    assert_includes assert_raises(ArgumentError) { app.serve }.message, "which is no socket"
  ensure
    ENV.delete("ONWARD_FD")
    writer&.close
  end

  def test_hello_states_the_worker
    connect(name: "images", slots: 2, key: "secret") { |app| app.handler("it", limit: 1, retry: 2) { nil } }
    assert_equal ["images", 2, "secret", "onward-ruby", Onward::VERSION],
                 @hello.values_at("name", "slots", "key", "sdk", "version")
    assert_equal 1, @hello["kinds"]["it"]["limit"]
    leave
  end

  def test_a_key_is_not_logged
    log = StringIO.new
    connect(key: "secret-7", logger: Logger.new(log)) { |app| app.handler("it") { nil } }
    leave
    assert_includes log.string, "connected"
    refute_includes log.string, "secret-7"
  end

  def test_prefetch_raises_the_credit
    connect(slots: 2, prefetch: 5) { |app| app.handler("it") { nil } }
    assert_equal 7, @gateway.credit
    leave
  end

  def test_a_running_worker_takes_no_handlers
    connect { |app| app.handler("it") { nil } }
    assert_includes assert_raises(Onward::Error) { @app.handler("other") { nil } }.message, "runs already"
    assert_includes assert_raises(Onward::Error) { @app.middleware { nil } }.message, "runs already"
    assert_includes assert_raises(Onward::Error) { @app.serve }.message, "runs already"
    leave
  end

  def test_a_refused_worker_raises_the_reason
    @gateway = FakeGateway.new
    app = worker(gateway: @gateway.address)
    app.handler("it") { nil }
    thread = Thread.new { assert_raises(Onward::Refused) { app.serve } }
    @gateway.accept({ t: "error", code: "unauthorised", text: "wrong key", remedy: "set ONWARD_KEY", fatal: true })
    assert_includes thread.value.message, "set ONWARD_KEY"
  end

  def test_a_worker_runs_again_after_its_end
    connect { |app| app.handler("it") { 7 } }
    leave
    @thread = Thread.new { @app.serve }
    @gateway.accept
    @gateway.task("it")
    assert_equal "7", @gateway.ended["result"]
    leave
  end

  def test_beats_go_on_under_a_handler_that_computes
    stop = false
    connect(welcome: { lease_ms: 2_000, heartbeat_ms: 400 }) { |app| app.handler("it") { nil until stop } }
    @gateway.task("it")
    3.times { @gateway.read("beat", 0.6) }
    stop = true
    assert_equal "ok", @gateway.ended["outcome"]
    leave
  end

  def test_every_way_out_of_a_handler_is_an_end
    ways = { "exit" => -> { exit }, "thread" => -> { Thread.exit }, "throw" => -> { throw :x },
             "stack" => -> { deep }, "kill" => -> { Thread.current.kill } }
    connect(slots: 1) { |app| ways.each { |kind, way| app.handler(kind) { way.call } } }
    ways.each_key.with_index do |kind, at|
      @gateway.task(kind, id: at.to_s)
      assert_equal [at.to_s, "fail"], @gateway.ended.values_at("task", "outcome"), kind
    end
    leave
  end

  def deep = deep

  def test_a_forked_process_is_refused_and_leaves_the_connection_alone
    connect do |app|
      app.handler("fork") do |_, ctx|
        reader, writer = IO.pipe
        pid = fork do
          ctx.checkpoint(1)
        rescue Onward::ForkError => e
          writer.write(e.message)
        ensure
          exit!(0)
        end
        writer.close
        Process.wait(pid)
        reader.read
      end
    end
    @gateway.task("fork")
    assert_includes @gateway.ended["result"], "fork before `run`"
    @gateway.task("fork", id: "2")
    assert_equal "ok", @gateway.ended["outcome"]
    leave
  end

  def test_a_forked_process_that_returns_from_the_handler_ends
    connect do |app|
      app.handler("fork") do
        pid = fork
        next if pid.nil?

        Process.wait2(pid)[1].exitstatus
      end
    end
    _, error = capture_subprocess_io do
      @gateway.task("fork")
      assert_equal "1", @gateway.ended["result"]
    end
    assert_includes error, "forked from a running worker"
    leave
  end

  def test_a_forked_process_does_not_keep_the_connection_open
    reader, writer = IO.pipe
    connect do |app|
      app.handler("fork") do
        pid = fork do
          reader.read(1)
          exit!(0)
        end
        Process.detach(pid)
        nil
      end
    end
    @gateway.task("fork")
    @gateway.ended
    @app.stop
    @gateway.read("bye")
    @app.stop # the worker closes its own end
    assert_raises(EOFError) { @gateway.read("nothing", 5) }
    writer.write("x")
  end

  def test_a_started_program_does_not_keep_the_connection
    connect { |app| app.handler("it") { `ls -l /proc/self/fd | grep -c socket` } }
    @gateway.task("it")
    assert_equal "\"0\\n\"", @gateway.ended["result"]
    leave
  end

  def test_signals_have_their_handlers_back_after_the_run
    mine = proc {}
    before = trap("TERM", mine)
    connect { |app| app.handler("it") { nil } }
    Process.kill("TERM", Process.pid)
    @gateway.read("bye")
    @gateway.close_connection
    @thread.join(10)
    assert_same mine, trap("TERM", before || "DEFAULT")
  end

  def test_a_second_signal_ends_at_once
    connect(grace: 60) { |app| app.handler("it") { |_, ctx| ctx.sleep(60) } }
    @gateway.task("it")
    @app.stop
    @gateway.read("drain")
    @app.stop
    assert_raises(EOFError) { @gateway.read("nothing", 5) }
    assert_includes ending.message, "stopped at once"
  end

  def test_a_worker_that_is_stopped_while_it_connects_says_bye
    @gateway = FakeGateway.new
    @app = worker(gateway: @gateway.address)
    @app.handler("it") { nil }
    @thread = Thread.new { @app.serve }
    @gateway.greet
    @app.stop
    wait_for("the worker drains") { @thread.status == "sleep" }
    @gateway.send(**FakeGateway::WELCOME)
    assert_equal %w[drain bye], [@gateway.read("drain"), @gateway.read("bye", 1)].map { |message| message["t"] }
    @gateway.close_connection
    assert @thread.join(10)
  end

  def test_a_handler_that_ignores_a_stop_is_reported
    log = StringIO.new
    running = Thread::Queue.new
    gate = Thread::Queue.new
    connect(logger: Logger.new(log)) { |app| app.handler("it") { running << 1 && gate.pop } }
    @gateway.task("it")
    running.pop
    @gateway.send(t: "stop", task: "1", fence: "1", why: "cancelled", grace_ms: 10)
    wait_for("the report") { log.string.include?("still runs after its grace") }
    gate << 1
    assert_equal "ok", @gateway.ended["outcome"]
    leave
  end

  def test_a_worker_whose_handler_does_not_stop_leaves_without_bye
    running = Thread::Queue.new
    gate = Thread::Queue.new
    connect(grace: 0) { |app| app.handler("it") { running << 1 && gate.pop } }
    @gateway.task("it")
    running.pop # A stop before the handler runs would end without it, and with a bye.
    @app.stop
    assert_raises(EOFError) { @gateway.read("bye", 8) }
    assert_includes ending.message, "1 handlers did not stop"
    gate << 1
  end

  def test_a_submit_without_a_key_fails_when_its_connection_is_lost
    connect { |app| app.handler("it") { |_, ctx| ctx.submit("mail") } }
    @gateway.task("it")
    @gateway.read("submit")
    @gateway.close_connection
    @gateway.accept
    assert_equal "Unavailable", @gateway.ended["class"]
    leave
  end

  # Returns the log of a worker after one task.
  def log_of(&)
    log = StringIO.new
    connect(logger: Logger.new(log)) { |app| app.handler("it", &) }
    @gateway.task("it")
    @gateway.ended
    leave
    log.string
  end

  def test_the_log_of_a_failure_has_the_attempt_and_the_backtrace
    log = log_of { raise IOError, "no disk" }
    assert_includes log, "attempt 1 of task 1 of kind `it` failed"
    assert_includes log, __FILE__
  end

  def test_the_log_of_a_failure_that_the_handler_chose_has_no_backtrace
    log = log_of { raise Onward::Fail, "not today" }
    assert_includes log, "attempt 1 of task 1 of kind `it` failed: Onward::Fail: not today"
    refute_includes log, __FILE__
  end
end
