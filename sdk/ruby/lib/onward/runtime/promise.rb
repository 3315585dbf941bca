# frozen_string_literal: true

module Onward
  module Runtime
    # A value that another thread supplies. One thread waits for it, once.
    class Promise
      def initialize
        @queue = Thread::Queue.new
      end

      # Supplies the value.
      def fulfil(value) = @queue << [value, nil]

      # Supplies an error, which `value` raises.
      def reject(error) = @queue << [nil, error]

      # Waits for the value and returns it.
      def value
        value, error = @queue.pop
        raise error if error

        value
      end
    end
  end
end
