# frozen_string_literal: true

require "open3"
require_relative "gateway_process"

# Workflows whose steps are in workers, while every process is killed, paused, stopped and replaced.
class KillsTest < Minitest::Test
  def test_over_ipc_no_step_is_lost_or_done_twice = kill_over("ipc")

  def test_over_http_no_step_is_lost_or_done_twice = kill_over("http")

  private

  def kill_over(carrier)
    skip("no program `onward`") unless GatewayProcess.program

    worker = Shellwords.join([RbConfig.ruby, File.join(__dir__, "steps_worker.rb")])
    suite = File.join(PROJECT, "sdk/conformance/kills.py")
    environment = { "ONWARD_BIN" => GatewayProcess.program }
    options = ["--faults", "5", "--carrier", carrier, "--worker", worker]
    out, status = Open3.capture2e(environment, "python3", suite, *options)
    assert_predicate status, :success?, out
  end
end
