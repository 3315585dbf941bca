# frozen_string_literal: true

require_relative "frames"

module Onward
  module Protocol
    # A decoder of a stream of frames into messages.
    #
    # `commands` allows command frames, which only ZMTP connections have. They are returned as
    # messages of type `$command`, with the body as their payload.
    class Decoder
      # The bound of one payload, in bytes: that of `welcome`. Before it, no payload is allowed.
      attr_accessor :max_payload

      def initialize(commands:, max_payload: 0)
        @commands = commands
        @max_payload = max_payload
        @buffer = String.new(encoding: Encoding::BINARY)
        @at = 0
        @frames = []
        @size = 0
      end

      # Returns whether the stream stands within a message or frame.
      def inside_message? = !@frames.empty? || @at < @buffer.bytesize

      # Adds received bytes and returns the messages that they complete.
      def feed(data)
        if @at.positive?
          @buffer = @buffer.byteslice(@at, @buffer.bytesize - @at)
          @at = 0
        end
        @buffer << data
        messages = []
        while (message = next_message)
          messages << message
        end
        messages
      end

      private

      def next_message
        while (flags = next_frame)
          body = @body
          return Message.new({ "t" => "$command" }, [body]) if flags & COMMAND != 0

          @size += body.bytesize unless @frames.empty?
          @frames << body
          next if flags & MORE != 0

          frames = @frames
          @frames = []
          @size = 0
          header = Frames.decode_header(frames.shift, frames.size)
          return Message.new(header, frames)
        end
      end

      # Reads one frame into `@body` and returns its flags, or nil if it has not arrived whole.
      def next_frame
        available = @buffer.bytesize - @at
        return if available.zero?

        flags = @buffer.getbyte(@at)
        check_flags(flags) if flags > MORE
        head = flags & LONG == 0 ? 2 : 9
        return if available < head

        size = head == 2 ? @buffer.getbyte(@at + 1) : @buffer.unpack1("Q>", offset: @at + 1)
        check_size(size, flags)
        return if available - head < size

        @body = @buffer.byteslice(@at + head, size)
        @at += head + size
        flags
      end

      def check_flags(flags)
        if flags & ~(MORE | LONG | COMMAND) != 0
          raise ProtocolError.new("bad_frame", format("the flags of a frame are %#04x; bits 3-7 are 0", flags))
        end
        return if flags & COMMAND == 0 || (@commands && flags & MORE == 0 && @frames.empty?)

        raise ProtocolError.new("bad_frame", "a command frame is not allowed here")
      end

      # Checks a length before its body is read.
      def check_size(size, flags)
        return check_payload(size, flags) unless @frames.empty?
        return if size <= HEADER_BYTES

        raise ProtocolError.new("header_too_large", "a header has #{size} bytes, more than #{HEADER_BYTES}")
      end

      def check_payload(size, flags)
        raise ProtocolError.new("too_many", "a message has more than #{PAYLOADS} payloads") if @frames.size > PAYLOADS

        alone = @frames.size == 1 && flags & MORE == 0
        return if size <= @max_payload && (alone || @size + size <= MESSAGE_BYTES)

        raise ProtocolError.new(
          "payload_too_large",
          "a payload has #{size} bytes; one may have #{@max_payload}, and several #{MESSAGE_BYTES} together"
        )
      end
    end
  end
end
