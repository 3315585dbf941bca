# frozen_string_literal: true

require_relative "lib/onward/version"

Gem::Specification.new do |spec|
  spec.name = "onward"
  spec.version = Onward::VERSION
  spec.authors = ["The Onward Authors"]
  spec.summary = "Workers and clients for Onward: durable tasks and workflows, in pure Ruby"
  spec.description = "Handlers for Onward in Ruby: tasks, workflow steps, decisions and batches that survive crashes."
  spec.homepage = "https://github.com/onward-engine/onward"
  spec.licenses = ["MIT", "Apache-2.0"]
  spec.required_ruby_version = ">= 3.1"
  # `ONWARD_PLATFORM=x86_64-linux gem build` makes the gem of a platform, with the program that is in
  # `libexec`. The pure gem has no program and no command.
  if ENV["ONWARD_PLATFORM"]
    spec.platform = Gem::Platform.new(ENV.fetch("ONWARD_PLATFORM"))
    spec.bindir = "exe"
    spec.executables = ["onward"]
  end
  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb", "sig/**/*.rbs", "examples/*", "README.md"] }
  spec.files += ["exe/onward", "libexec/onward"] if ENV["ONWARD_PLATFORM"]
  spec.metadata = {
    "rubygems_mfa_required" => "true",
    "source_code_uri" => "https://github.com/onward-engine/onward/tree/main/sdk/ruby"
  }
end
