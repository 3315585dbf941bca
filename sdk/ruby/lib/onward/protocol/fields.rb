# frozen_string_literal: true

require_relative "frames"

module Onward
  module Protocol
    # Reads fields of a header, each checked for its type and range.
    module Fields
      module_function

      def bad(where, name, value, rule)
        ProtocolError.new("bad_field", "`#{name}` of `#{where}` is #{value.inspect[0, 80]}; it must be #{rule}")
      end

      # Returns a text. Without a default, the field is required and not empty.
      def text(where, header, name, default = nil)
        value = header[name]
        return default if value.nil? && default
        return value if value.is_a?(String) && (default || !value.empty?)

        raise bad(where, name, value, "a string")
      end

      # Returns a text, or nil if it is absent or empty.
      def optional_text(where, header, name)
        value = text(where, header, name, "")
        value.empty? ? nil : value
      end

      # Returns an integer of at least `least`. Without a default, the field is required.
      def integer(where, header, name, least = 0, default = nil)
        value = header[name]
        return default if value.nil? && default
        return value if value.is_a?(Integer) && value >= least

        raise bad(where, name, value, "an integer of at least #{least}")
      end

      # Returns a time in seconds from a field in milliseconds, or nil if it is absent.
      def optional_seconds(where, header, name, least = 0)
        header[name].nil? ? nil : integer(where, header, name, least) / 1000.0
      end

      # Returns an object of strings; empty if it is absent.
      def texts(where, header, name)
        value = header[name]
        return {} if value.nil?
        return value if value.is_a?(Hash) && value.each_value.all?(String)

        raise bad(where, name, value, "an object of strings")
      end

      # Returns a list of strings; empty if it is absent.
      def names(where, header, name)
        value = header[name] || []
        return value if value.is_a?(Array) && value.all?(String)

        raise bad(where, name, value, "a list of strings")
      end

      # Returns a list of objects within the bound of entries; empty if it is absent.
      def entries(where, header, name, least = 0)
        value = header[name] || []
        unless value.is_a?(Array) && value.size >= least && value.all?(Hash)
          raise bad(where, name, value, "a list of at least #{least} objects")
        end
        return value if value.size <= PAYLOADS

        raise ProtocolError.new("too_many", "`#{name}` of `#{where}` has #{value.size} entries, more than #{PAYLOADS}")
      end

      # Returns the payload to which an index points, or nil without an index.
      def payload_at(where, header, name, payloads)
        index = header[name]
        return if index.nil?
        return payloads[index] if index.is_a?(Integer) && index >= 0 && index < payloads.size

        raise bad(where, name, index, "an index below #{payloads.size}")
      end
    end
  end
end
