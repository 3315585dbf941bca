# frozen_string_literal: true

require_relative "bodies"
require_relative "transport"

module Onward
  # Events of a store as they come, without end. `cursor` is the position behind the last one.
  class Watch
    include Enumerable

    attr_reader :cursor

    def initialize(transport, path, after)
      @http = transport
      @path = path
      @cursor = after
      @attempts = Attempts.new(transport.retry_for)
    end

    # Yields each event. Leave the loop by `break`.
    #
    # After a cut it continues behind the last event. Raises Unavailable if the server is gone for
    # longer than `retry_for`, and Problem.
    def each(&block)
      return enum_for(:each) unless block

      loop { once(&block) }
    rescue Raised => e
      raise e.cause
    end

    # Carries an error of the caller's block past the handling of a cut.
    class Raised < StandardError; end
    private_constant :Raised

    private

    def once(&)
      failure = cut(&)
      @attempts.failed(failure, least: (failure.retry_after if failure.is_a?(Problem)))
    end

    # Reads one stream, and returns the error by which it ended.
    def cut(&)
      read_stream(&)
      @http.unavailable(Lost.new(EOFError.new("the stream was cut"), sent: true))
    rescue Lost => e
      @http.unavailable(e)
    rescue Problem => e
      raise unless @http.passing?(e)

      e
    end

    def read_stream(&)
      rest = +""
      message = {}
      @http.stream(@path, @cursor) do |piece|
        next @attempts.succeeded if piece.nil?

        rest << piece
        while (line = rest.slice!(/\A[^\n]*\n/))
          message = read_line(line.chomp, message, &)
        end
      end
    end

    # Takes a line in, and returns the message that it belongs to.
    def read_line(line, message, &)
      name, value = line.split(":", 2)
      # A line that begins with a colon is a comment.
      message[name] = value.to_s.delete_prefix(" ") unless name.to_s.empty?
      return message unless line.empty?

      deliver(message, &) unless message.empty?
      {}
    end

    def deliver(message)
      return if message["event"] == "bye"

      event = Bodies.event(message) or return
      @attempts.progressed
      @cursor = event.cursor
      begin
        yield event
      rescue StandardError
        raise Raised
      end
    end
  end
end
