# frozen_string_literal: true

require "logger"

module Onward
  # A logger whose lines begin with the task, its kind and the attempt.
  class TaskLogger
    def initialize(logger, task)
      @logger = logger
      @prefix = "task #{task.task} #{task.kind} attempt #{task.attempt}: "
    end

    { debug: Logger::DEBUG, info: Logger::INFO, warn: Logger::WARN, error: Logger::ERROR,
      fatal: Logger::FATAL }.each do |name, severity|
      define_method(name) do |message = nil, &block|
        # A block is called only where its level is logged.
        @logger.add(severity) { "#{@prefix}#{block ? block.call : message}" }
      end
    end
  end
end
