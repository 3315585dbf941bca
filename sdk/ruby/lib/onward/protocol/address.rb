# frozen_string_literal: true

require "ipaddr"
require "uri"

module Onward
  module Protocol
    # The address of a gateway: `child`, `ipc://PATH`, `tcp://HOST:PORT` or `https://HOST`.
    class Address
      CHILD_DESCRIPTOR = 3
      TCP = %r{\Atcp://(?:\[(?<six>[^\]]+)\]|(?<host>[^:/\[\]]+)):(?<port>\d{1,5})\z}
      private_constant :CHILD_DESCRIPTOR, :TCP

      attr_reader :scheme, :place, :port

      # Returns the address in `text`, or else in ONWARD_GATEWAY.
      #
      # Raises ArgumentError with the remedy if there is none, or if it is not an address.
      def self.parse(text, environment)
        text ||= environment["ONWARD_GATEWAY"]
        raise ArgumentError, <<~TEXT.tr("\n", " ").strip if text.nil?
          no gateway: ONWARD_GATEWAY is not set. Start this program by `onward work --app "ruby app.rb"`,
          or set it to the address of `onward work --listen ipc:///run/onward.sock`
        TEXT

        case text
        when "child" then child(environment["ONWARD_FD"] || CHILD_DESCRIPTOR.to_s)
        when %r{\Aipc://.} then new(:ipc, text.delete_prefix("ipc://"))
        when %r{\Atcp://} then tcp(text)
        when %r{\Ahttps?://} then http(text)
        else raise ArgumentError, "the gateway `#{text}` is not an address; " \
                                  "use child, ipc://PATH, tcp://HOST:PORT or https://HOST:PORT"
        end
      end

      def self.child(text)
        return new(:child, Integer(text, 10)) if text.match?(/\A\d{1,9}\z/)

        raise ArgumentError, "ONWARD_FD is `#{text}`; it must be the number of an open socket"
      end

      def self.tcp(text)
        found = TCP.match(text)
        host = found && (found[:six] || found[:host])
        unless host && (1..65_535).cover?(found[:port].to_i)
          raise ArgumentError, "the gateway `#{text}` is not an address; use tcp://HOST:PORT"
        end
        return new(:tcp, host, found[:port].to_i) if loopback?(host)

        raise ArgumentError, <<~TEXT.tr("\n", " ").strip
          the gateway `#{text}` is not on loopback; a connection without encryption stays on this machine:
          forward the port through SSH or a service mesh, and use tcp://127.0.0.1:PORT
        TEXT
      end

      def self.http(text)
        url = URI.parse(text)
        raise URI::InvalidURIError unless url.host && !url.query && !url.fragment
        return new(url.scheme.to_sym, text.delete_suffix("/")) if url.scheme == "https" || loopback?(url.hostname)

        raise ArgumentError, "the gateway `#{text}` is not on loopback; payloads and the key need encryption: use https://"
      rescue URI::InvalidURIError
        raise ArgumentError, "the gateway `#{text}` is not an address; use http://127.0.0.1:PORT or https://HOST"
      end

      def self.loopback?(host)
        host == "localhost" || IPAddr.new(host).loopback?
      rescue IPAddr::Error
        false
      end

      private_class_method :child, :tcp, :http, :loopback?

      def initialize(scheme, place, port = nil)
        @scheme = scheme
        @place = place
        @port = port
      end

      # Returns whether the worker may connect again: a child has one connection in its life.
      def reconnects? = @scheme != :child

      # Returns whether the bytes of the connection travel in requests.
      def http? = %i[http https].include?(@scheme)

      def to_s
        case @scheme
        when :http, :https then @place
        when :child then "child"
        when :ipc then "ipc://#{@place}"
        else "tcp://#{@place.include?(':') ? "[#{@place}]" : @place}:#{@port}"
        end
      end
    end
  end
end
