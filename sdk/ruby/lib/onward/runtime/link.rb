# frozen_string_literal: true

require_relative "../protocol/connection"
require_relative "../protocol/messages"
require_relative "outbox"

module Onward
  module Runtime
    # The link to the gateway: connects, reads, writes, and connects again. One thread reads; each
    # connection has a second one that writes.
    #
    # The listener is a Run: it makes `hello`, and acts on the gateway's messages.
    class Link
      # The bounds of the delay before a new connection, in seconds.
      FIRST_BACKOFF = 0.1
      LONGEST_BACKOFF = 10.0

      # The age of a connection after which the next delay begins at the first one again, in seconds.
      STABLE_SECONDS = 10.0

      # The time that the gateway has to close the connection after `bye`, in seconds.
      GOODBYE_SECONDS = 2.0

      # The errors after which a new connection may succeed.
      TRANSIENT = %w[busy shutting_down timeout].freeze

      BROKEN = [SystemCallError, IOError, ProtocolError].freeze
      private_constant :BROKEN

      def initialize(address, outbox, listener, logger)
        @address = address
        @outbox = outbox
        @listener = listener
        @logger = logger
        @closing = @said_bye = false
        @lock = Mutex.new
        @changed = ConditionVariable.new
      end

      # Connects, on a thread of its own.
      def start
        @reader = Thread.new { run }
        @reader.name = "onward-reader"
        @reader.report_on_exception = false
      end

      # Ends the connection; none follows.
      def close
        @lock.synchronize do
          @closing = true
          @changed.broadcast
        end
        @connection&.shut
      end

      # Ends this connection; another one may resume its session.
      def interrupt = @connection&.shut

      # Sends `bye` to the gateway, which closes the connection. After the last one none follows.
      def say_bye(last:)
        @said_bye = true
        @session = nil
        @outbox.say_bye(last: last)
        return unless last

        @closing = true
        return close if @connection.nil?

        Thread.new do
          @lock.synchronize { @changed.wait(@lock, GOODBYE_SECONDS) }
          @connection&.shut
        end
      end

      # Closes this process's copy of the connection after a fork.
      def forget_after_fork = @connection&.close

      private

      # Connects until the worker or a refusal ends it.
      def run
        error = reconnect_until_closed
      rescue StandardError => e # the worker ends, and its owner gets the error
        error = e
      ensure
        @listener.lost_all if error || !@said_bye
        @outbox.abandon
        @listener.closed(error)
      end

      def reconnect_until_closed
        failures = 0
        until @closing
          began = monotonic
          error = broken_connection
          return if @closing
          return error unless @address.reconnects?

          @logger.warn("onward: the gateway at #{@address}: #{error.message}") if error
          failures = monotonic - began > STABLE_SECONDS ? 0 : failures + 1
          wait_to_reconnect(failures)
        end
      end

      # Runs one connection. Returns the error that ended it; nil if the worker said bye.
      def broken_connection
        connect
        nil
      rescue *BROKEN => e
        @said_bye ? nil : e
      end

      def wait_to_reconnect(failures)
        limit = monotonic + (rand * [LONGEST_BACKOFF, FIRST_BACKOFF * (2**[failures, 16].min)].min)
        while !@closing && (left = limit - monotonic).positive?
          left = [left, [@outbox.lease_end - monotonic, 0].max + 0.001].min
          @lock.synchronize { @changed.wait(@lock, left) unless @closing }
          check_lease
        end
      end

      # Gives up the tasks if the lease has passed without an answer of the gateway.
      def check_lease
        return if monotonic < @outbox.lease_end

        @logger.warn("onward: no answer of the gateway within the lease: its tasks are given up")
        @outbox.forget_lease
        @session = nil
        @listener.lost_all
      end

      def connect
        connection = @connection = Protocol::Connection.open(@address)
        return if @closing

        messages = greet(connection)
        writer = Thread.new { write(connection) }
        writer.name = "onward-writer"
        begin
          read(connection, messages)
        ensure
          @outbox.close
          connection.shut
          writer.join
        end
      ensure
        @connection = nil
        connection&.close
        check_lease
      end

      # Sends `hello` and returns the messages that came after `welcome`.
      def greet(connection)
        limit = monotonic + Protocol::Connection::HANDSHAKE_SECONDS
        connection.write(Protocol::Frames.encode(@listener.hello(@session))) { limit - monotonic }
        messages = []
        messages = without_commands(connection.receive(limit)) while messages.empty?
        welcome = Protocol::Messages.parse(messages.shift)
        check_welcome(welcome)
        connection.decoder.max_payload = welcome.max_payload
        @session = welcome.session
        @said_bye = false
        @listener.welcomed(welcome)
        @outbox.open(welcome)
        messages
      end

      def check_welcome(welcome)
        case welcome
        when Protocol::Welcome then return
        when Protocol::Refusal
          raise Errno::ECONNREFUSED, welcome.to_s if TRANSIENT.include?(welcome.code) && @address.reconnects?

          raise Refused.new(welcome.code, welcome.text, welcome.remedy)
        end
        raise ProtocolError.new("unexpected", "another message came before `welcome`")
      end

      def without_commands(messages) = messages.reject { |message| command?(message) }

      # Answers a command of ZMTP. Returns whether the message is one.
      def command?(message)
        return false if message.header["t"] != "$command"

        answer = Protocol::Connection.pong(message.payloads[0])
        @outbox.send_raw(answer) if answer
        true
      end

      def read(connection, messages)
        loop do
          messages.each { |message| act(message) unless command?(message) }
          messages = connection.receive
        end
      rescue EOFError, Errno::ECONNRESET
        return if @said_bye || @closing

        if connection.decoder.inside_message?
          raise ProtocolError.new("bad_frame",
                                  "the connection ended within a message")
        end

        raise Errno::ECONNRESET, "the gateway closed the connection"
      end

      def act(message)
        incoming = Protocol::Messages.parse(message)
        case incoming
        when Protocol::Tasks then @listener.tasks(incoming.list)
        when Protocol::Acks then @outbox.acknowledge(incoming.list)
        when Protocol::Alive then alive(incoming)
        when Protocol::Stop then @listener.stop_attempt(incoming)
        when Protocol::Reply then @outbox.reply(incoming)
        when Protocol::Drain then @listener.drained(incoming)
        when Protocol::Refusal then reported(incoming)
        else raise ProtocolError.new("unexpected", "a second `welcome` came")
        end
      rescue ProtocolError => e
        raise unless e.code == "unsupported"

        @outbox.send_raw(Protocol::Frames.encode({ t: "error", code: e.code, text: e.text, fatal: false }))
      end

      # After a fatal error the gateway has no session of this connection any more; another connection
      # resumes it.
      def reported(error)
        raise Errno::ECONNABORTED, "the gateway ended the session: #{error}" if error.fatal

        @logger.error("onward: the gateway reports #{error}")
      end

      def alive(alive)
        @outbox.alive(alive)
        @listener.lost(alive.lost)
      end

      # Sends the parcels of the outbox, and never waits beyond the lease.
      def write(connection)
        while (parcel = @outbox.take)
          connection.write(parcel.encode) { @outbox.lease_end - monotonic }
        end
      rescue SystemCallError, IOError => e
        @logger.debug("onward: sending to the gateway failed: #{e.message}")
      rescue StandardError => e
        @logger.error("onward: a message could not be sent: #{e.full_message(highlight: false)}")
      ensure
        # It wakes the reader, which decides what follows.
        connection.shut
      end

      def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
