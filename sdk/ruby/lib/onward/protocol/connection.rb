# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "address"
require_relative "decoder"
require_relative "tunnel"

module Onward
  module Protocol
    # A connected socket and the decoder of what it receives. The carriers differ only in how it
    # begins; ipc and tcp shake hands as ZMTP 3.1 with NULL.
    class Connection
      # The longest time for the connection and its handshake, in seconds.
      HANDSHAKE_SECONDS = 10.0

      RECEIVE_BYTES = 262_144
      GREETING = ["ff00000000000000007f0301", "NULL".b.ljust(20, "\0"), "\0" * 32].then do |head, name, tail|
        ([head].pack("H*") + name + tail).freeze
      end
      READY = Frames.frame("\x05READY\x0bSocket-Type".b << [6].pack("N") << "DEALER", COMMAND).freeze
      private_constant :RECEIVE_BYTES

      attr_reader :socket, :decoder

      # Connects to a gateway and returns the connection, ready for `hello`.
      #
      # Raises SystemCallError or IOError if it cannot be reached, ProtocolError if the peer is no
      # gateway.
      def self.open(address)
        return new(adopt(address.place), Decoder.new(commands: false)) if address.scheme == :child
        return through_http(address) if address.http?

        connection = new(dial(address), Decoder.new(commands: true))
        begin
          connection.shake_hands
        rescue StandardError
          connection.close
          raise
        end
        connection
      end

      def self.adopt(descriptor)
        socket = UNIXSocket.for_fd(descriptor)
        # Programs that a handler starts must not keep the connection open.
        socket.close_on_exec = true
        socket
      rescue SystemCallError => e
        raise ArgumentError, "ONWARD_FD is #{descriptor}, which is no socket (#{e.message}); " \
                             'start this program by `onward work --app "ruby app.rb"`'
      end

      def self.dial(address)
        if address.scheme == :tcp
          socket = Socket.tcp(address.place, address.port, connect_timeout: HANDSHAKE_SECONDS)
          socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          return socket
        end
        socket = Socket.new(:UNIX, :STREAM)
        # A full backlog is an error, after which the worker tries again.
        socket.connect_nonblock(Socket.pack_sockaddr_un(address.place))
        socket
      rescue SocketError, ArgumentError => e # a name that does not resolve, a path that is too long
        raise Errno::EADDRNOTAVAIL, e.message
      rescue SystemCallError
        socket&.close
        raise
      end

      def self.through_http(address)
        tunnel = Tunnel.new(address.to_s, ENV.fetch("ONWARD_KEY", nil))
        new(tunnel.open, Decoder.new(commands: false), tunnel)
      end

      private_class_method :adopt, :dial, :through_http

      def initialize(socket, decoder, tunnel = nil)
        @socket = socket
        @decoder = decoder
        @tunnel = tunnel
        @early = []
        @received = String.new(capacity: RECEIVE_BYTES)
      end

      # Returns the next messages; waits for them up to `until_time` of the monotonic clock.
      #
      # Raises EOFError at the end of the connection.
      def receive(until_time = nil)
        return @early.slice!(0..) unless @early.empty?

        wait_until(until_time) if until_time
        @decoder.feed(@socket.readpartial(RECEIVE_BYTES, @received))
      end

      # Writes all of `data`; asks the block for the seconds that are left where it has to wait.
      def write(data)
        until data.empty?
          written = @socket.write_nonblock(data, exception: false)
          if written == :wait_writable
            left = yield
            raise Errno::ETIMEDOUT, "the gateway has not read in time" if left <= 0

            @socket.wait_writable([left, 3600.0].min)
          else
            data = data.byteslice(written, data.bytesize - written)
          end
        end
      end

      # Ends the connection and wakes the thread that reads from it.
      def shut
        @socket.shutdown
      rescue SystemCallError, IOError
        nil # it has ended already
      end

      # Closes the connection. What was written still reaches a gateway behind HTTP.
      def close
        @socket.close
        @tunnel&.finish
      rescue SystemCallError, IOError
        nil
      end

      # Does the handshake of ZMTP 3.1 as a DEALER.
      def shake_hands
        limit = now + HANDSHAKE_SECONDS
        write(GREETING + READY) { limit - now }
        greeting = read_greeting(limit)
        messages = @decoder.feed(greeting.byteslice(GREETING.bytesize..))
        messages = receive(limit) while messages.empty?
        ready = messages.shift
        unless ready.header["t"] == "$command" && ready.payloads[0].start_with?("\x05READY".b)
          raise ProtocolError.new("bad_frame", "the gateway refused the handshake of ZMTP")
        end

        @early = messages
      end

      # Returns the answer to a command of ZMTP, or nil if it needs none.
      #
      # Raises ProtocolError for an ERROR command.
      def self.pong(command)
        if command.start_with?("\x04PING".b)
          return Frames.frame("\x04PONG".b << (command.byteslice(7..) || ""),
                              COMMAND)
        end
        return unless command.start_with?("\x05ERROR".b)

        reason = (command.byteslice(7..) || "").force_encoding(Encoding::UTF_8).scrub
        raise ProtocolError.new("bad_frame", "the gateway ended the connection: #{reason}")
      end

      private

      def read_greeting(limit)
        data = "".b
        while data.bytesize < GREETING.bytesize
          wait_until(limit)
          data << @socket.readpartial(RECEIVE_BYTES)
        end
        unless data.getbyte(0) == 0xFF && data.getbyte(9).odd? && data.getbyte(10) >= 3
          raise ProtocolError.new("bad_frame", "the peer does not speak ZMTP 3; check the address of the gateway")
        end

        mechanism = data.byteslice(12, 20).delete_suffix("\0" * 16)
        return data if mechanism == "NULL"

        name = data.byteslice(12, 20).delete("\0").inspect
        raise ProtocolError.new("bad_frame", "the gateway requires the mechanism #{name}; this worker has NULL only")
      end

      def wait_until(limit)
        left = limit - now
        return if left.positive? && @socket.wait_readable(left)

        raise Errno::ETIMEDOUT, "the gateway sent nothing"
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
