# frozen_string_literal: true

require_relative "fields"

module Onward
  module Protocol
    # One task as the gateway sends it. Times are in seconds from its receipt.
    class TaskMessage
      PLAIN = %w[task fence kind attempt payload].freeze
      private_constant :PLAIN

      attr_reader :task, :fence, :kind, :attempt, :payload, :checkpoint, :queue, :priority, :deadline, :heartbeat,
                  :group, :key, :parent, :scheduled_at, :items, :tags, :headers, :trace

      # Returns the task in an entry of `tasks`.
      def self.read(entry, payloads)
        message = new(
          Fields.text("tasks", entry, "task"), Fields.text("tasks", entry, "fence"),
          Fields.text("tasks", entry, "kind"), Fields.integer("tasks", entry, "attempt", 1),
          Fields.payload_at("tasks", entry, "payload", payloads) || EMPTY
        )
        # Most tasks have only these fields, so the others are not looked up one by one.
        message.read_options(entry, payloads) unless entry.size <= PLAIN.size && (entry.keys - PLAIN).empty?
        message
      end

      def initialize(task, fence, kind, attempt, payload, checkpoint: nil, headers: {}, tags: {})
        @task = task
        @fence = fence
        @kind = kind
        @attempt = attempt
        @payload = payload
        @checkpoint = checkpoint
        @queue = "default"
        @priority = 128
        @items = 0
        @tags = tags
        @headers = headers
        @trace = {}
      end

      # The task and its claim, which together name this attempt.
      def token = "#{@task}.#{@fence}"

      # Reads the fields that most tasks do not have.
      def read_options(entry, payloads)
        @checkpoint = Fields.payload_at("tasks", entry, "checkpoint", payloads)
        @queue = Fields.text("tasks", entry, "queue", "default")
        @priority = Fields.integer("tasks", entry, "priority", 0, 128)
        @deadline = Fields.optional_seconds("tasks", entry, "deadline_ms")
        @heartbeat = Fields.optional_seconds("tasks", entry, "heartbeat_ms", 1)
        @group = Fields.optional_text("tasks", entry, "group")
        @key = Fields.optional_text("tasks", entry, "key")
        @parent = Fields.optional_text("tasks", entry, "parent")
        @scheduled_at = Fields.optional_text("tasks", entry, "scheduled_at")
        @items = Fields.integer("tasks", entry, "items", 0, 0)
        read_maps(entry)
      end

      private

      def read_maps(entry)
        @tags = Fields.texts("tasks", entry, "tags")
        @headers = Fields.texts("tasks", entry, "headers")
        @trace = Fields.texts("tasks", entry, "trace")
      end
    end
  end
end
