# frozen_string_literal: true

require_relative "gateway_process"

# The worker against the real gateway: results, stops, and processes that are killed.
class GatewayTest < Minitest::Test
  include Helpers

  TASKS = 400
  EXAMPLES = File.expand_path("../examples", __dir__)

  # The exit code of `onward work` after a signal: the work is kept.
  STOPPED = 0

  def setup
    return if GatewayProcess.program

    text = "no program `onward`; build it by `cargo build`, or set ONWARD_BIN"
    ENV["ONWARD_REQUIRE_BACKENDS"] ? flunk(text) : skip(text)
  end

  def teardown
    Process.kill("KILL", @other) if @other
    Process.wait(@other) if @other
    @gateway&.finish
  end

  def gateway(worker = File.join(__dir__, "count_worker.rb")) = @gateway ||= GatewayProcess.new(worker)

  def submit(count) = gateway.onward("submit", "--kind", "count", "--lines", stdin: (0...count).map { "#{_1}\n" }.join)

  def wait_for_completed(goal)
    wait_for("#{goal} tasks complete", 120) { gateway.count("completed") >= goal }
  end

  def assert_each_completed_once(count)
    wait_for_completed(count)
    events = gateway.onward("events", "--json").lines.map { |line| JSON.parse(line) }
    times = events.select { |event| event["change"] == "completed" }.map { |event| event["task"] }.tally
    assert_equal count, times.size
    assert_equal [1], times.values.uniq
  end

  def worker_pid
    wait_for("the worker starts") { File.exist?(gateway.pid_file) && File.read(gateway.pid_file)[/\d+/] }.to_i
  end

  def forget_pid = worker_pid.tap { File.delete(gateway.pid_file) }

  def gone?(pid)
    File.read("/proc/#{pid}/stat").rpartition(")").last.split.first == "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    true
  end

  def test_a_task_runs_and_its_result_is_kept
    gateway.start
    assert_equal "41", gateway.onward("submit", "--kind", "count", "--wait", "41").strip
    assert_equal STOPPED, gateway.stop
  end

  def test_killed_workers_lose_nothing_and_complete_nothing_twice
    submit(TASKS)
    gateway.start
    40.step(TASKS - 101, 80) do |goal|
      wait_for_completed(goal)
      Process.kill("KILL", forget_pid)
    end
    assert_each_completed_once(TASKS)
  end

  def test_killed_gateways_lose_nothing_and_complete_nothing_twice
    submit(TASKS)
    gateway.start
    40.step(TASKS - 101, 80) do |goal|
      wait_for_completed(goal)
      worker = forget_pid
      gateway.stop("KILL")
      wait_for("the child of a killed gateway exits", 10) { gone?(worker) }
      gateway.start
    end
    assert_each_completed_once(TASKS)
  end

  def test_a_worker_outlives_the_gateways_to_which_it_connects
    address = "ipc://#{gateway.folder}/gateway.sock"
    environment = { "ONWARD_GATEWAY" => address, "PID_FILE" => gateway.pid_file, "HOLD_FILE" => "unused" }
    @other = spawn(environment, RbConfig.ruby, File.join(__dir__, "count_worker.rb"), %i[out err] => File::NULL)
    submit(TASKS)
    gateway.start(listen: address)
    [40, 200].each do |goal|
      wait_for_completed(goal)
      gateway.stop("KILL")
      gateway.start(listen: address)
    end
    assert_each_completed_once(TASKS)
    refute gone?(@other)
  end

  def test_a_paused_worker_completes_nothing_twice
    submit(TASKS)
    gateway.start
    wait_for_completed(40)
    Process.kill("STOP", worker_pid)
    before = gateway.count("completed")
    Process.kill("CONT", worker_pid)
    assert_operator before, :<, TASKS
    assert_each_completed_once(TASKS)
  end

  def test_a_cancelled_task_stops_its_handler
    gateway.start
    gateway.onward("submit", "--kind", "hold")
    wait_for("the handler begins") { File.exist?(File.join(gateway.folder, "hold")) }
    gateway.onward("task", "cancel", "1")
    wait_for("the task is cancelled") { gateway.count("cancelled") == 1 }
    assert_equal STOPPED, gateway.stop
  end

  def test_a_stopped_gateway_drains_its_worker
    submit(100)
    gateway.start
    wait_for_completed(10)
    assert_equal STOPPED, gateway.stop
    assert_equal [0, 0], %w[running failed].map { |state| gateway.count(state) }
  end

  def test_the_example_of_checksums
    files = File.join(gateway(File.join(EXAMPLES, "checksums.rb")).folder, "files")
    Dir.mkdir(files)
    %w[a b].each { |name| File.write(File.join(files, name), "#{name}\n") }
    gateway.start
    out = gateway.onward("submit", "--kind", "checksums", "--wait", JSON.generate({ folder: files }))
    assert_operator JSON.parse(out)["#{files}/a"], :start_with?, "87428fc522803d31"
  end

  def test_the_example_of_an_order_is_undone_when_it_fails
    gateway(File.join(EXAMPLES, "order.rb")).start
    template = File.join(EXAMPLES, "order.yaml")
    done = gateway.onward("run", template, "--input", "order=7", "--input", "amount=40")
    assert_equal({ "parcel" => "parcel-7" }, JSON.parse(done))
    gateway.onward("run", template, "--input", "order=8", "--input", "amount=-40", check: false)
    effects = PStore.new(File.join(gateway.folder, "ledger")).transaction(true) { |ledger| ledger[:effects] }
    assert_equal(%w[reserved charged shipped reserved released], effects.each_value.map { |one| one[:what] })
  end
end
