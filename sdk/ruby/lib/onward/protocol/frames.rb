# frozen_string_literal: true

require "json"
require_relative "../errors"

module Onward
  # Frames, messages and their fields, as docs/worker-protocol.md defines them. It does no I/O.
  module Protocol
    MORE = 1
    LONG = 2
    COMMAND = 4

    # The longest header of a message, in bytes.
    HEADER_BYTES = 65_536

    # The deepest nesting of arrays and objects in a header.
    HEADER_DEPTH = 64

    # The largest number of payloads of a message, and of entries of a list in a header.
    PAYLOADS = 1_024

    # The default bound of one payload, in bytes.
    PAYLOAD_BYTES = 1_048_576

    # The bound of all payloads of a message together, unless it has only one, in bytes.
    MESSAGE_BYTES = 16 * 1_048_576

    # The payload without an index.
    EMPTY = "".b.freeze

    # A message: its header, and its payloads in binary Strings.
    Message = Struct.new(:header, :payloads)

    # Encodes messages, and decodes headers.
    module Frames
      module_function

      # Returns one frame with its flags and length. The body is binary.
      def frame(body, flags = 0)
        size = body.bytesize
        head = size < 256 ? [flags, size].pack("CC") : [flags | LONG, size].pack("CQ>")
        head << body
      end

      # Returns the bytes of a message.
      #
      # Raises ProtocolError `header_too_large` if the header exceeds its bound.
      def encode(header, payloads = [])
        return frame(header_bytes(header)) if payloads.empty?

        header[:payloads] = payloads.size
        bytes = frame(header_bytes(header), MORE)
        last = payloads.size - 1
        payloads.each_with_index { |payload, at| bytes << frame(payload, at == last ? 0 : MORE) }
        bytes
      end

      def header_bytes(header)
        body = JSON.generate(header).force_encoding(Encoding::BINARY)
        return body if body.bytesize <= HEADER_BYTES

        raise ProtocolError.new(
          "header_too_large",
          "the header of `#{header[:t]}` has #{body.bytesize} bytes, more than #{HEADER_BYTES}; " \
          "send fewer entries in a message"
        )
      end

      # Returns the header in `body` of a message with this number of payload frames.
      def decode_header(body, payloads)
        header = parse(body.force_encoding(Encoding::UTF_8))
        unless header.is_a?(Hash) && header["t"].is_a?(String)
          raise ProtocolError.new("bad_header", "the header is not an object with a string `t`")
        end

        stated = header["payloads"] || 0
        return header if stated.eql?(payloads)

        raise ProtocolError.new("payload_count",
                                "`payloads` is #{stated.inspect[0, 80]}, but #{payloads} frames follow")
      end

      def parse(text)
        raise ProtocolError.new("bad_header", "the header is not UTF-8") unless text.valid_encoding?

        JSON.parse(text, max_nesting: HEADER_DEPTH)
      rescue JSON::ParserError => e # a deeper nesting raises a subclass of it
        raise ProtocolError.new("bad_header", "the header is not JSON within its bounds: #{e.message[0, 200]}")
      end
    end
  end
end
