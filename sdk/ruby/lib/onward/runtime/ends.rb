# frozen_string_literal: true

require_relative "../payload"
require_relative "../tasks"

module Onward
  module Runtime
    # An entry of an `end` message. `references` are fields that get the index of a payload when the
    # message is built: the object, the name of the field, and the payload.
    End = Struct.new(:entry, :references) do
      def payload(name)
        reference = references.find { |object, field, _| object.equal?(entry) && field == name }
        reference && reference[2]
      end
    end

    # Another end of an attempt than a result, returned by a handler.
    Ending = Struct.new(:outcome, :fields, :checkpoint)

    # Makes ends of attempts from what handlers return or raise.
    module Ends
      TEXT_BYTES = 8_192
      CLASS_BYTES = 128
      DETAILS_BYTES = 4_096
      BACKTRACE_BYTES = 1_500
      SPAWNING = %w[ok later children move].freeze

      # The part of a header that is kept free beside spawned tasks, for progress and the list itself.
      SPAWN_MARGIN = 4_096

      module_function

      # Returns a text cut to a number of bytes of UTF-8, at a character.
      def cut(text, longest)
        text = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
        text.bytesize <= longest ? text : "#{text.byteslice(0, longest - 3).scrub('')}…"
      end

      # Returns an end without payloads.
      def plain(task, outcome, fields = {})
        End.new({ task: task.task, fence: task.fence, outcome: outcome, **fields }, [])
      end

      # Returns the end of a task that was not started, or is given up.
      def release(task, why) = plain(task, "release", why: why)

      # Returns the end of an attempt with a result.
      #
      # A result that cannot be written as JSON or is too large becomes a failure without a retry.
      def completed(task, value, max_payload)
        payload = Payload.encode(value)
        return too_large(task, "result", payload.bytesize, max_payload) if payload.bytesize > max_payload

        entry = { task: task.task, fence: task.fence, outcome: "ok" }
        End.new(entry, [[entry, :payload, payload]])
      rescue PayloadError => e
        failed(task, e, final: true)
      end

      # Returns the end that a handler chose instead of a result.
      def ended_otherwise(task, ending, max_payload)
        result = plain(task, ending.outcome, ending.fields)
        checkpoint = ending.checkpoint
        return result if checkpoint.nil?
        return too_large(task, "checkpoint", checkpoint.bytesize, max_payload) if checkpoint.bytesize > max_payload

        result.references << [result.entry, :checkpoint, checkpoint]
        result
      end

      def too_large(task, name, size, bound)
        failure(task, "PayloadTooLarge", "the #{name} of task #{task.task} has #{size} bytes, more than #{bound}; " \
                                         "store the data elsewhere and return a reference", retry: false)
      end

      def failure(task, name, message, **fields)
        plain(task, "fail", class: cut(name, CLASS_BYTES), message: cut(message, TEXT_BYTES), **fields)
      end

      # Returns the end of an attempt that raised an error. After a final one no attempt follows.
      def failed(task, error, final: false)
        name = (error.class.name || "anonymous class").delete_prefix("Onward::")
        result = failure(task, name, error.message.empty? ? name : error.message)
        add_delay(result.entry, error)
        result.entry[:retry] = false if final || error.is_a?(Fail)
        details = details_of(error)
        result.entry[:details] = details unless details.nil?
        result
      end

      def add_delay(entry, error)
        return unless error.is_a?(RetryLater)

        entry[:retry_after_ms] = (error.after * 1000).round
        entry[:counts] = false unless error.counts
      end

      def details_of(error)
        unless error.respond_to?(:details)
          return { backtrace: cut((error.backtrace || []).join("\n"),
                                  BACKTRACE_BYTES) }
        end
        return if error.details.nil?

        text = Payload.encode(error.details)
        return JSON.parse(text.force_encoding(Encoding::UTF_8), max_nesting: 32) if text.bytesize <= DETAILS_BYTES

        { omitted: "the details had #{text.bytesize} bytes, more than #{DETAILS_BYTES}" }
      rescue PayloadError, JSON::ParserError
        { omitted: "the details of class #{error.details.class} cannot be written as JSON" }
      end

      # Returns the end of an attempt that raised an error after it was asked to stop.
      #
      # nil means that no end is sent, because the lease has passed on.
      def stopped(task, why, error)
        case why
        when "lost" then nil
        when "cancelled" then plain(task, "cancelled")
        when "timeout"
          return failed(task, error) unless error.is_a?(Cancelled)

          failure(task, "Timeout", "the attempt exceeded its time limit")
        else release(task, why == "stopping" ? "draining" : "given_up")
        end
      end

      # Returns the failure that is sent after the gateway refused an end.
      def refused(ended, why)
        fields = { class: "Refused", retry: false,
                   message: cut("the gateway refused the end of this attempt: #{why}", TEXT_BYTES) }
        End.new({ task: ended.entry[:task], fence: ended.entry[:fence], outcome: "fail", **fields }, [])
      end

      # Returns the release that is sent after the gateway refused that failure too.
      def given_up(ended)
        End.new({ task: ended.entry[:task], fence: ended.entry[:fence], outcome: "release", why: "given_up" }, [])
      end

      # Returns the end with the children that it submits, or a failure if they do not fit.
      def with_spawned(ended, task, spawned, max_payload, trace)
        return ended if spawned.empty? || !SPAWNING.include?(ended.entry[:outcome])

        total = 0
        ended.entry[:spawn] = spawned.map do |child|
          payload = child.encoded_payload
          total += payload.bytesize
          if payload.bytesize > max_payload || total > Protocol::MESSAGE_BYTES / 2
            return too_large(task, "payload of the spawned tasks", total, max_payload)
          end

          child_header(ended, child, payload, trace)
        end
        fitting(ended, task)
      rescue PayloadError => e
        failed(task, e, final: true)
      end

      def child_header(ended, child, payload, trace)
        header = child.to_header
        unless payload.empty?
          ended.references << [header, :payload, payload]
          # The index is written when the message is built; until then its longest form counts.
          header[:payload] = Protocol::PAYLOADS
        end
        header[:trace] = trace unless trace.empty?
        header
      end

      def fitting(ended, task)
        size = JSON.generate(ended.entry).bytesize
        return ended if size <= Protocol::HEADER_BYTES - SPAWN_MARGIN && ended.references.size <= Protocol::PAYLOADS

        failure(task, "SpawnTooLarge",
                "#{ended.entry[:spawn].size} spawned tasks need #{size} bytes of a header, more than " \
                "#{Protocol::HEADER_BYTES - SPAWN_MARGIN}; submit them with `submit_many`, with keys", retry: false)
      end
    end
  end
end
