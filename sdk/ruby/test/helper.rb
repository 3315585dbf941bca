# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "json"
require "minitest/autorun"
require "onward/testing"

PROJECT = File.expand_path("../../..", __dir__)
VECTORS = JSON.parse(File.read(File.join(PROJECT, "crates/onward-protocol/vectors.json")))

# Helpers of several tests.
module Helpers
  def worker(**options) = Onward::Worker.new(logger: Logger.new(ENV.fetch("TEST_LOG", nil)), **options)

  # Returns the outcome of a handler that is made from the options and block.
  def run_handler(payload = nil, options: {}, **run, &block)
    app = worker
    app.handler("it", **options, &block)
    Onward::Testing.run(app, "it", payload, **run)
  end

  # Returns the first true value of the block, within a time.
  def wait_for(text, seconds = 60)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (value = yield)
      flunk("not within #{seconds} s: #{text}") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      sleep(0.02)
    end
    value
  end
end

# Prints results as Rust's test harness does, for `cargo xtask test`, if ONWARD_TEST_LINES is set.
class LineReporter < Minitest::AbstractReporter
  def record(result)
    name = "#{result.klass}::#{result.name}"
    if result.passed?
      puts "\ntest #{name} ... ok <#{format('%.3f', result.time)}s>"
    elsif result.skipped?
      puts "\ntest #{name} ... ignored"
    else
      puts "\ntest #{name} ... FAILED\n---- #{name} stdout ----\n#{result}\nfailures:"
    end
  end
end

# The plugin that adds the reporter.
module Minitest
  def self.plugin_onward_lines_init(_)
    return unless ENV["ONWARD_TEST_LINES"]

    reporter.reporters.reject! { |one| one.is_a?(ProgressReporter) }
    reporter << LineReporter.new
  end
  extensions << "onward_lines"
end
