# frozen_string_literal: true

require "open3"
require_relative "helper"

# The worker passes every script of the scripted gateway, on every carrier that the script names.
class ConformanceTest < Minitest::Test
  FOLDER = File.join(PROJECT, "sdk/conformance")

  Dir.glob("scripts/*.json", base: FOLDER).sort.each do |path|
    name = File.basename(path, ".json")
    define_method("test_#{name}") do
      run_suite("--only", name)
    end
  end

  def test_every_script_over_http = run_suite("--carrier", "http")

  private

  def run_suite(*options)
    worker = [RbConfig.ruby, "-w", File.join(__dir__, "conformance_worker.rb")]
    out, status = Open3.capture2e("python3", "#{FOLDER}/conformance.py", *options, "--", *worker)
    assert_predicate status, :success?, out
  end
end
