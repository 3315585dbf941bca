# frozen_string_literal: true

require "fileutils"
require "open3"
require "pstore"
require "rbconfig"
require "shellwords"
require "tmpdir"
require_relative "helper"

# `onward work --app` as a process, for tests against the real gateway.
class GatewayProcess
  LIBRARY = File.expand_path("../lib", __dir__)

  # Returns the program `onward`: ONWARD_BIN, or the one of the last debug build; nil without one.
  def self.program
    path = ENV.fetch("ONWARD_BIN", File.join(PROJECT, "target/debug/onward"))
    path if File.file?(path)
  end

  attr_reader :folder, :pid_file

  def initialize(worker)
    @program = GatewayProcess.program
    @folder = Dir.mktmpdir("onward-ruby-")
    @worker = "#{Shellwords.escape(RbConfig.ruby)} -I #{LIBRARY} #{Shellwords.escape(worker)}"
    @pid_file = File.join(@folder, "pid")
    @environment = {
      "ONWARD_STORE" => File.join(@folder, "onward.db"), "PID_FILE" => @pid_file,
      "HOLD_FILE" => File.join(@folder, "hold"), "LEDGER" => File.join(@folder, "ledger")
    }
  end

  # Starts the gateway, which starts the worker, or with `listen` waits for it.
  def start(listen: nil)
    command = listen ? ["--listen", listen] : ["--app", @worker]
    log = File.join(@folder, "log")
    @pid = spawn(@environment, @program, "work", *command, in: File::NULL, %i[out err] => [log, "a"])
  end

  # Runs a command of `onward` on the store and returns its output.
  def onward(*arguments, stdin: "", check: true)
    out, err, status = Open3.capture3(@environment, @program, *arguments, stdin_data: stdin, chdir: @folder)
    raise "onward #{arguments.join(' ')}: #{err}" if check && !status.success?

    out
  end

  # Returns the number of tasks in a state.
  def count(state) = JSON.parse(onward("task", "count", "--json", "--state", state))["tasks"]

  # Sends a signal to the gateway and returns its exit code.
  def stop(signal = "TERM")
    Process.kill(signal, @pid)
    status = Process.wait2(@pid)[1]
    @pid = nil
    status.exitstatus
  end

  def finish
    stop("KILL") if @pid
    FileUtils.remove_entry(@folder)
  end

  def log = File.read(File.join(@folder, "log"))
end
