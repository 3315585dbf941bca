# frozen_string_literal: true

require_relative "fields"
require_relative "task_message"

module Onward
  module Protocol
    # The gateway's acceptance of a worker. Times are in seconds.
    Welcome = Struct.new(:session, :lease, :heartbeat, :max_payload, :features, :gateway)

    # Tasks to run.
    Tasks = Struct.new(:list)

    # The fate of one end: `result` is `ok`, `stale` or `refused`.
    Ack = Struct.new(:task, :fence, :result, :why)

    # The fates of ends.
    Acks = Struct.new(:list)

    # The answer to a beat.
    Alive = Struct.new(:n, :lost, :refused)

    # The request to stop an attempt. `grace` is in seconds.
    Stop = Struct.new(:task, :fence, :why, :grace)

    # The gateway stops. `within` is in seconds.
    Drain = Struct.new(:why, :within)

    # The answer to a `submit` or `ask`.
    Reply = Struct.new(:request, :header, :payloads)

    # An `error` of the gateway.
    Refusal = Struct.new(:code, :text, :remedy, :fatal) do
      def to_s = remedy.empty? ? "#{code}: #{text}" : "#{code}: #{text}; #{remedy}"
    end

    # Checks every field of a gateway's message once, before the worker acts on it.
    module Messages
      STOP_REASONS = %w[cancelled lost preempted timeout].freeze
      ACK_RESULTS = %w[ok stale refused].freeze
      private_constant :STOP_REASONS, :ACK_RESULTS

      extend Fields

      module_function

      # Returns a checked message of the gateway.
      #
      # Raises ProtocolError `unsupported` for an unknown type, `bad_field` for a wrong field.
      def parse(message)
        header = message.header
        case header["t"]
        when "tasks" then tasks(header, message.payloads)
        when "ack" then acks(header)
        when "alive" then alive(header)
        when "stop" then stop(header)
        when "reply" then Reply.new(integer("reply", header, "request"), header, message.payloads)
        when "drain" then Drain.new(text("drain", header, "why", ""), integer("drain", header, "within_ms") / 1000.0)
        when "welcome" then welcome(header)
        when "error" then refusal(header)
        else raise ProtocolError.new("unsupported", "the type `#{header['t'][0, 80]}` is unknown")
        end
      end

      def welcome(header)
        version = integer("welcome", header, "protocol", 1)
        raise bad("welcome", "protocol", version, "1, the only version of this worker") if version != 1

        lease = integer("welcome", header, "lease_ms", 100)
        heartbeat = integer("welcome", header, "heartbeat_ms", 10)
        if heartbeat > lease / 2
          raise bad("welcome", "heartbeat_ms", heartbeat, "at most half of `lease_ms` (#{lease})")
        end

        Welcome.new(
          text("welcome", header, "session"), lease / 1000.0, heartbeat / 1000.0,
          integer("welcome", header, "max_payload", 1, PAYLOAD_BYTES),
          names("welcome", header, "features"), text("welcome", header, "gateway", "")
        )
      end

      def tasks(header, payloads)
        Tasks.new(entries("tasks", header, "tasks", 1).map { |entry| TaskMessage.read(entry, payloads) })
      end

      def acks(header)
        list = entries("ack", header, "ends", 1).map do |entry|
          result = entry["result"]
          raise bad("ack", "result", result, "ok, stale or refused") unless ACK_RESULTS.include?(result)

          Ack.new(text("ack", entry, "task"), text("ack", entry, "fence"), result, text("ack", entry, "why", ""))
        end
        Acks.new(list)
      end

      def alive(header)
        refused = entries("alive", header, "refused").to_h do |entry|
          [text("alive", entry, "task"), text("alive", entry, "why", "")]
        end
        Alive.new(integer("alive", header, "n"), names("alive", header, "lost"), refused)
      end

      def stop(header)
        why = header["why"]
        raise bad("stop", "why", why, STOP_REASONS.join(", ")) unless STOP_REASONS.include?(why)

        grace = integer("stop", header, "grace_ms", 0, 0) / 1000.0
        Stop.new(text("stop", header, "task"), text("stop", header, "fence"), why, grace)
      end

      def refusal(header)
        fatal = header["fatal"]
        raise bad("error", "fatal", fatal, "true or false") unless [nil, true, false].include?(fatal)

        Refusal.new(
          text("error", header, "code"), text("error", header, "text", ""),
          text("error", header, "remedy", ""), fatal || false
        )
      end
    end
  end
end
