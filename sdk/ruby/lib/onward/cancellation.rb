# frozen_string_literal: true

require_relative "errors"

module Onward
  # The part of a context by which a handler learns that its attempt should stop.
  module Cancellation
    # The reason to stop: `cancelled`, `lost`, `preempted`, `timeout`, `stopping`, or nil.
    attr_reader :why

    # Returns whether the attempt should stop.
    def cancelled? = !@why.nil?

    # Raises Cancelled if the attempt should stop.
    def check!
      raise Cancelled, @why if @why
    end

    # Calls the block once when the attempt should stop, on a thread of the worker.
    #
    # It must return soon: set a flag, close a socket, kill a process. If the attempt should stop
    # already, it is called at once. Returns the block.
    def on_cancel(&block)
      (@callbacks ||= []) << block
      run_callbacks if @why
      block
    end

    # Waits, but not beyond the request to stop. Returns whether the attempt should stop.
    def wait(seconds)
      lock = Mutex.new
      stopped = ConditionVariable.new
      callback = on_cancel { lock.synchronize { stopped.broadcast } }
      limit = monotonic + seconds
      lock.synchronize do
        while @why.nil? && (left = limit - monotonic).positive?
          stopped.wait(lock, left)
        end
      end
      @callbacks.delete(callback)
      cancelled?
    end

    # Waits like `Kernel#sleep`, but raises Cancelled when the attempt should stop.
    def sleep(seconds)
      wait(seconds)
      check!
    end

    # Asks the attempt to stop. Called by the worker; a later reason replaces only with `lost`.
    # @api private
    def request_stop(why)
      @why = why if @why.nil? || why == "lost"
      run_callbacks
    end

    private

    def run_callbacks
      while (callback = @callbacks&.pop)
        begin
          callback.call
        rescue StandardError => e
          logger.error("a callback of `on_cancel` raised #{e.class}: #{e.message}")
        end
      end
    end
  end
end
