# frozen_string_literal: true

require_relative "protocol/messages"
require_relative "results"
require_relative "tasks"

module Onward
  # Writes requests of a handler to the gateway, and reads their replies.
  module Requests
    # The longest wait of one `ask`, in seconds.
    LONGEST_WAIT = 60

    module_function

    # Returns a new task from the arguments of `submit` or `spawn`.
    def new_task(task, payload, options)
      return NewTask.new(task, payload, **options) unless task.is_a?(NewTask)
      return task if payload.nil? && options.empty?

      raise ArgumentError, "a NewTask has its payload and options already"
    end

    # Returns the entries and payloads of a submit.
    #
    # Raises ArgumentError for a payload that is too large, Refused for headers that the gateway
    # cannot keep.
    def encode_tasks(tasks, features, max_payload, trace)
      payloads = []
      size = 0
      entries = tasks.map do |task|
        header = header_of(task, features, trace)
        payload = task.encoded_payload
        size += payload.bytesize
        check_size(task, payload, max_payload, tasks.size > 1 ? size : 0)
        unless payload.empty?
          header[:payload] = payloads.size
          payloads << payload
        end
        header
      end
      [entries, payloads]
    end

    def header_of(task, features, trace)
      header = task.to_header
      has_headers = features.include?("headers")
      if !has_headers && !task.headers.empty?
        raise Refused.new("unsupported", "the gateway has no feature `headers`", "submit without headers, or use tags")
      end

      header[:trace] = trace if has_headers && !trace.empty?
      header
    end

    def check_size(task, payload, max_payload, together)
      return if payload.bytesize <= max_payload && together <= Protocol::MESSAGE_BYTES

      raise ArgumentError, "the payload of a task of kind `#{task.kind}` has #{payload.bytesize} bytes; one may have " \
                           "#{max_payload}, and those of one submit #{Protocol::MESSAGE_BYTES} together"
    end

    # Returns the reply, or raises Refused if it is an error.
    def check(reply)
      error = reply.header["error"]
      return reply if error.nil?
      raise Protocol::Fields.bad("reply", "error", error, "an object") unless error.is_a?(Hash)

      fields = Protocol::Fields
      raise Refused.new(fields.text("reply", error, "code"), fields.text("reply", error, "text", ""),
                        fields.text("reply", error, "remedy", ""))
    end

    # Returns the reply to a submit.
    def read_submitted(reply)
      Protocol::Fields.entries("reply", check(reply).header, "tasks", 1).map do |entry|
        Submitted.new(Protocol::Fields.text("reply", entry, "task"), Protocol::Fields.text("reply", entry, "result"))
      end
    end

    # Returns the fields of an `ask` for a result.
    def result_fields(task, wait)
      return { task: task, wait_ms: (wait * 1000).round } if (0..LONGEST_WAIT).cover?(wait)

      raise ArgumentError, "wait is #{wait}; it must be from 0 to #{LONGEST_WAIT} seconds"
    end

    # Returns the reply to an `ask` for a result.
    def read_result(task, reply) = result_of(task, check(reply).header, reply.payloads)

    # Returns the children in a page of a reply.
    def read_children(reply)
      Protocol::Fields.entries("reply", check(reply).header, "children").map do |entry|
        kind = Protocol::Fields.text("reply", entry, "kind")
        result_of(Protocol::Fields.text("reply", entry, "task"), entry, reply.payloads, kind: kind)
      end
    end

    # Returns the payloads in a page of a reply.
    def read_items(reply)
      Protocol::Fields.entries("reply", check(reply).header, "items").map do |entry|
        Protocol::Fields.payload_at("reply", entry, "payload", reply.payloads) || Protocol::EMPTY
      end
    end

    # Returns the value of `after` for the next page, or nil.
    def next_page(reply) = Protocol::Fields.optional_text("reply", reply.header, "next")

    def result_of(task, fields, payloads, kind: nil)
      TaskResult.new(
        task, Protocol::Fields.text("reply", fields, "state"),
        Protocol::Fields.payload_at("reply", fields, "payload", payloads),
        Protocol::Fields.optional_text("reply", fields, "error_text"), kind: kind
      )
    end

    private_class_method :header_of, :check_size, :result_of
  end
end
