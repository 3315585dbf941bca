# frozen_string_literal: true

require "date"
require "json"
require "set"
require "time"
require_relative "errors"

module Onward
  # Payloads: JSON to Ruby values and back. A binary String is a payload as it is.
  module Payload
    # The deepest nesting of a result.
    DEPTH = 100

    module_function

    # Returns a value as a payload: a binary String as it is, everything else as JSON.
    #
    # Structs and objects with `to_h` become objects, Sets lists, symbols texts, times RFC 3339.
    #
    # Raises PayloadError if the value cannot be written as JSON.
    def encode(value)
      return value if value.is_a?(String) && value.encoding == Encoding::BINARY

      JSON.generate(plain(value, 0)).force_encoding(Encoding::BINARY)
    rescue JSON::GeneratorError, EncodingError => e
      raise PayloadError, "a #{value.class} cannot be written as JSON: #{e.message[0, 200]}"
    end

    # Returns the JSON value of a payload; nil if the payload is empty.
    def decode(payload, symbols: false)
      return nil if payload.empty?

      text = payload.dup.force_encoding(Encoding::UTF_8)
      raise PayloadError, "the payload is not UTF-8; declare `input: :bytes` for other data" unless text.valid_encoding?

      JSON.parse(text, symbolize_names: symbols, max_nesting: DEPTH)
    rescue JSON::ParserError => e
      raise PayloadError, "the payload is not JSON: #{e.message[0, 200]}"
    end

    # Returns a value that `JSON.generate` writes without loss. It would write `to_s` of any object.
    def plain(value, depth)
      case value
      when nil, true, false, Integer, Float then value
      when String, Symbol then text(value.to_s)
      when Hash, Array then nested(value, depth)
      when Time, DateTime then value.iso8601(6)
      when Date then value.iso8601
      else plain(converted(value), depth + 1)
      end
    end

    def nested(value, depth)
      raise PayloadError, "a value is nested deeper than #{DEPTH}" if depth >= DEPTH
      return value.map { |item| plain(item, depth + 1) } if value.is_a?(Array)

      value.to_h { |name, item| [text(name.to_s), plain(item, depth + 1)] }
    end

    def converted(value)
      return value.to_a if value.is_a?(Set)
      # Every Enumerable has a `to_h`, but of most it needs pairs.
      return value.to_h if value.respond_to?(:to_h) && (value.is_a?(Struct) || !value.is_a?(Enumerable))

      raise PayloadError, "a #{value.class} has no JSON form; return a Hash, a Struct or an object with `to_h`"
    end

    def text(value)
      # JSON is text: bytes of other encodings are converted, never copied.
      value = value.encode(Encoding::UTF_8)
      return value if value.valid_encoding?

      raise PayloadError, "a text is not valid UTF-8; return bytes as one binary String (`String#b`)"
    end

    private_class_method :plain, :nested, :converted, :text
  end
end
