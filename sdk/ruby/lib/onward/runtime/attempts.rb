# frozen_string_literal: true

require_relative "ends"
require_relative "fork_guard"

module Onward
  module Runtime
    # Runs handlers, and makes the ends of their attempts.
    class Attempts
      attr_accessor :max_payload, :features

      def initialize(outbox, logger)
        @outbox = outbox
        @logger = logger
        @process = Process.pid
        @max_payload = Protocol::PAYLOAD_BYTES
        @features = []
      end

      # Runs an attempt and ends it. It raises nothing, so that the thread lives on.
      def run(context)
        ended = nil
        done = false
        ended = end_of(context)
        done = true
      ensure
        unless done
          # The handler ended its thread (`Thread.exit`), which no rescue sees.
          ended = end_of_error(context, Error.new("the handler ended its thread; return from it instead"))
        end
        leave_fork
        @outbox.end(context, ended)
      end

      # Raises ForkError in a process that was forked from the worker's.
      def check_process
        raise ForkError, ForkGuard::REMEDY if Process.pid != @process
      end

      private

      def end_of(context)
        value = context.entry.call(context)
        end_of_value(context, value)
      rescue Exception => e # rubocop:disable Lint/RescueException -- every way out of a handler is an end
        end_of_error(context, e)
      end

      def end_of_value(context, value)
        return if context.why == "lost"

        ended = if value.is_a?(Ending)
                  Ends.ended_otherwise(context.task, value, @max_payload)
                else
                  Ends.completed(context.task, value, @max_payload)
                end
        finish(context, ended)
      end

      def finish(context, ended)
        unless context.spawned.empty?
          trace = @features.include?("headers") ? context.trace : {}
          ended = Ends.with_spawned(ended, context.task, context.spawned, @max_payload, trace)
        end
        ended.entry[:progress] = context.progress_fields if context.progress_fields
        ended
      end

      def end_of_error(context, error)
        task = context.task
        why = context.why
        if why
          unless error.is_a?(Cancelled)
            text = "#{error.class}: #{error.message}"
            @logger.warn("onward: task #{task.task} failed after it was asked to stop: #{text}")
          end
          return Ends.stopped(task, why, error)
        end

        # The backtrace is of use only where the handler did not choose the failure.
        text = error.is_a?(Error) ? "#{error.class}: #{error.message}" : error.full_message(highlight: false)
        @logger.info("onward: attempt #{task.attempt} of task #{task.task} of kind `#{task.kind}` failed: #{text}")
        finish(context, Ends.failed(task, error))
      end

      # Ends a process that a handler forked, and that returned from it: the attempt is the parent's.
      def leave_fork
        return if Process.pid == @process

        warn("onward: #{ForkGuard::REMEDY}")
        Process.exit!(1)
      end
    end
  end
end
