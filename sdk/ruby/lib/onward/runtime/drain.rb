# frozen_string_literal: true

require_relative "ends"

module Onward
  module Runtime
    # The end of a session: no new tasks, time for the running ones, then `bye`. One thread uses it,
    # except `active?`.
    class Drain
      # The time that handlers have to return after they were asked to stop, in seconds.
      ABORT_SECONDS = 5.0

      # The block is called when the worker may leave.
      def initialize(outbox, scheduler, logger, &finished)
        @outbox = outbox
        @scheduler = scheduler
        @logger = logger
        @finished = finished
      end

      def active? = !@phase.nil?

      # Returns the time at which `tick` has something to do, or nil.
      def deadline = active? ? @deadline : nil

      # Releases the tasks that have not started, and gives the rest `grace` seconds.
      def begin(grace)
        return if active?

        @phase = :finishing
        @grace = grace
        @deadline = monotonic + grace
        @outbox.drain(true)
        @scheduler.release.each { |context| @outbox.end(context, Ends.release(context.task, "draining")) }
      end

      # Goes on to the next phase if the worker is idle or the time has passed.
      def tick
        return unless active?
        return finish if @outbox.idle?
        return if monotonic < @deadline
        return ask_to_stop if @phase == :finishing

        report_stuck
        finish
      end

      private

      def ask_to_stop
        running = @outbox.held
        @phase = :aborting
        @deadline = monotonic + ABORT_SECONDS
        @logger.warn("onward: #{running.size} tasks still run after #{@grace.round(3)} s: they are asked to stop")
        running.each { |context| context.request_stop("stopping") }
      end

      def finish
        @phase = nil
        @finished.call
      end

      def report_stuck
        @outbox.held.each do |context|
          @logger.error("onward: task #{context.task_id} of kind `#{context.kind}` does not stop; " \
                        "it runs again elsewhere")
        end
        kept = @outbox.kept_count
        @logger.error("onward: #{kept} ends were not acknowledged; their tasks may run again") if kept.positive?
      end

      def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
