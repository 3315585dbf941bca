# frozen_string_literal: true

module Onward
  # The base of all errors of this gem.
  class Error < StandardError; end

  # Ends the task as failed: no further attempt is made.
  #
  # `details` is any JSON value of at most 4 096 bytes, for programs that read the failure.
  class Fail < Error
    attr_reader :details

    def initialize(message = "the handler failed the task", details: nil)
      super(message)
      @details = details
    end
  end

  # Ends the attempt; the task is tried again after `after` seconds instead of its policy's delay.
  #
  # With `counts: false` the attempt is not counted: use it if something that the task needs is busy.
  class RetryLater < Error
    attr_reader :after, :counts, :details

    def initialize(message = "the handler asked for a later attempt", after:, counts: true, details: nil)
      raise ArgumentError, "after is #{after}; it must be at least 0 seconds" if after.negative?

      super(message)
      @after = after
      @counts = counts
      @details = details
    end
  end

  # The attempt should stop. Let it pass through the handler after its cleanup.
  #
  # `why` is `cancelled`, `lost`, `preempted`, `timeout` or `stopping`.
  class Cancelled < Error
    attr_reader :why

    def initialize(why = "cancelled")
      super("the attempt was asked to stop: #{why}")
      @why = why
    end
  end

  # The gateway or the store rejects a request. `code` is the protocol's, `remedy` says what to do.
  class Refused < Error
    attr_reader :code, :text, :remedy

    def initialize(code, text, remedy = "")
      super(remedy.empty? ? "#{code}: #{text}" : "#{code}: #{text}; #{remedy}")
      @code = code
      @text = text
      @remedy = remedy
    end
  end

  # The connection was lost before the reply, so that it is unknown whether the request took effect.
  #
  # A submit whose tasks all have keys is sent again by itself and does not raise this.
  class Unavailable < Error; end

  # A process that was forked from a running worker uses the worker, whose threads it does not have.
  class ForkError < Error; end

  # A payload or result that is not JSON, or does not have the form that the handler states.
  class PayloadError < Error; end

  # A message or frame that the protocol does not allow. `code` is the code of the error.
  class ProtocolError < Error
    attr_reader :code, :text

    def initialize(code, text)
      super("#{code}: #{text}")
      @code = code
      @text = text
    end
  end
end
