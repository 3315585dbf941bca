# frozen_string_literal: true

require_relative "promise"

module Onward
  module Runtime
    # A submit or ask without a reply. With `resend` it may be sent again on another connection.
    Request = Struct.new(:header, :payloads, :resend, :promise)

    # The requests without a reply. The outbox guards it by its lock.
    class RequestList
      def initialize
        @requests = {}
        @unsent = []
        @number = 0
      end

      # Begins a connection: what has no reply is sent again.
      def open = @unsent = @requests.keys

      def add(request)
        @number += 1
        @requests[@number] = request
        @unsent << @number
      end

      # Returns pairs of a number and a request that are to be sent.
      def take
        return [] if @unsent.empty?

        numbers = @unsent
        @unsent = []
        numbers.filter_map { |number| (request = @requests[number]) && [number, request] }
      end

      # Returns the request of a number, which has its reply now, or nil.
      def answered(number) = @requests.delete(number)

      # Returns the requests that may not be sent twice, and forgets them.
      def lose
        lost = @requests.reject { |_, request| request.resend }
        lost.each_key { |number| @requests.delete(number) }
        lost.values
      end

      # Returns every request, and forgets them.
      def abandon
        all = @requests.values
        @requests.clear
        all
      end
    end
  end
end
