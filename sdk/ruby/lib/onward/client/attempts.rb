# frozen_string_literal: true

# Workers and clients.
module Onward
  # The connection broke. `sent` tells whether the server may have received the request.
  class Lost < StandardError
    attr_reader :sent

    def initialize(error, sent:)
      super("#{error.class}: #{error.message}")
      @sent = sent
    end
  end

  # The pauses between attempts of one request or watch, and the end of trying.
  class Attempts
    # The first and the longest pause between two attempts, in seconds.
    FIRST = 0.1
    LONGEST = 5.0

    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def initialize(retry_for)
      @retry_for = retry_for
      @pause = FIRST
    end

    # Starts the time for which attempts may fail again.
    def succeeded = @until = nil

    # Makes the next pause short again.
    def progressed = @pause = FIRST

    # Waits before the next attempt. Raises the failure when the time is over.
    def failed(failure, least: nil)
      @until ||= Attempts.now + @retry_for
      pause = least || (@pause * rand(0.5..1.0))
      @pause = [2 * @pause, LONGEST].min
      raise failure if Attempts.now + pause > @until

      sleep(pause)
    end
  end
  private_constant :Attempts, :Lost
end
