# frozen_string_literal: true

require "open3"
require_relative "gateway_process"

# Workflows whose steps are in workers, while every process is killed, paused, stopped and replaced.
class KillsTest < Minitest::Test
  def test_no_step_is_lost_or_done_twice
    skip("no program `onward`") unless GatewayProcess.program
    worker = Shellwords.join([RbConfig.ruby, File.join(__dir__, "steps_worker.rb")])
    suite = File.join(PROJECT, "sdk/conformance/kills.py")
    environment = { "ONWARD_BIN" => GatewayProcess.program }
    out, status = Open3.capture2e(environment, "python3", suite, "--faults", "5", "--worker", worker)
    assert_predicate status, :success?, out
  end
end
