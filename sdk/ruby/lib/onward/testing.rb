# frozen_string_literal: true

require_relative "../onward"

module Onward
  # Runs a handler without a gateway, for tests. Load it by `require "onward/testing"`.
  #
  #   assert_equal "Hello, Ada", Onward::Testing.run(app, "greet", "Ada").value
  module Testing
    # The end of an attempt, and what its handler did before.
    #
    # `outcome` is `ok`, `fail`, `later`, `children`, `move`, `release`, `cancelled` or `lost`;
    # `fields` are those of the protocol's `end`. `error` is what the handler raised. `progress`,
    # `checkpoints`, `spawned` (NewTask) and `submitted` (entries of the protocol's `submit`) are
    # lists, in their order.
    Outcome = Struct.new(:outcome, :fields, :payload, :error, :progress, :checkpoints, :spawned, :submitted,
                         keyword_init: true) do
      # Returns the JSON value of the result, with Symbol keys if `symbols` is true.
      #
      # Raises what the handler raised, or Onward::Error if it ended without a result.
      def value(symbols: false)
        raise error if error
        raise Error, "the attempt ended with `#{outcome}`, not with a result: #{fields}" if outcome != "ok"

        Payload.decode(payload, symbols: symbols)
      end
    end

    # The gateway's part in one attempt: it records, and replies as a gateway would.
    # @api private
    class Recorder
      attr_reader :state, :logger, :progress, :checkpoints, :submitted, :max_payload, :features

      def initialize(worker, max_payload, features, answer)
        @state = worker.state
        @logger = worker.logger
        @max_payload = max_payload
        @features = features
        @answer = answer
        @progress = []
        @checkpoints = []
        @submitted = []
      end

      def touch(context)
        @progress << context.progress_fields if context.progress_fields
      end

      def save_checkpoint(_context, payload)
        @checkpoints << Payload.decode(payload)
        done(nil)
      end

      def request(header, payloads, resend:)
        fields, answered = header[:t] == "submit" ? submit(header[:tasks], resend) : ask(header, payloads)
        done(Protocol::Reply.new(0, JSON.parse(JSON.generate(fields)), answered || []))
      end

      def check_process = nil

      private

      def submit(tasks, _resend)
        first = @submitted.size + 1
        @submitted.concat(tasks)
        { tasks: (first..@submitted.size).map { |number| { task: number.to_s, result: "inserted" } } }
      end

      def ask(header, payloads)
        raise Error, "the handler asks for #{header[:what]}: give `answer:` to `Testing.run`" if @answer.nil?

        @answer.call(header, payloads)
      end

      def done(value) = Runtime::Promise.new.tap { |promise| promise.fulfil(value) }
    end
    private_constant :Recorder

    FEATURES = %w[ask headers submit].freeze
    private_constant :FEATURES

    module_function

    # Runs the handler of `kind` once, with the worker's middleware, and returns how it ended.
    #
    # `payload` and `checkpoint` are binary Strings, or become JSON. `stop` is a reason such as
    # `cancelled`: the attempt is asked to stop after `stop_after` seconds, or before it begins where
    # that is 0. `answer` takes the header of an `ask` and returns the fields and payloads of its
    # reply. `max_payload` (bytes) and `features` are those of the gateway.
    def run(worker, kind, payload = nil, attempt: 1, checkpoint: nil, headers: {}, stop: nil, stop_after: 0,
            max_payload: Protocol::PAYLOAD_BYTES, features: FEATURES, answer: nil)
      entry = worker.entry(kind)
      task = Protocol::TaskMessage.new(
        "1", "1", kind.to_s, attempt, payload.nil? ? Protocol::EMPTY : Payload.encode(payload),
        checkpoint: checkpoint.nil? ? nil : Payload.encode(checkpoint), headers: headers
      )
      recorder = Recorder.new(worker, max_payload, features, answer)
      context = Context.new(task, recorder, entry)
      value, error = stopping(context, stop, stop_after) { entry.call(context) }
      outcome(context, recorder, value, error)
    end

    def stopping(context, reason, after)
      context.request_stop(reason) if reason && after.zero?
      timer = Thread.new { sleep(after) && context.request_stop(reason) } if reason && after.positive?
      [yield, nil]
    rescue StandardError => e
      [nil, e]
    ensure
      timer&.kill&.join
    end

    def outcome(context, recorder, value, error)
      ended = end_of(context, recorder, value, error)
      ended = spawn_with(ended, context, recorder) if ended
      Outcome.new(
        outcome: ended ? ended.entry[:outcome] : "lost", fields: ended ? ended.entry : {},
        payload: ended&.payload(:payload) || Protocol::EMPTY, error: error, progress: recorder.progress,
        checkpoints: recorder.checkpoints, spawned: context.spawned, submitted: recorder.submitted
      )
    end

    def end_of(context, recorder, value, error)
      task = context.task
      ends = Runtime::Ends
      return ends.stopped(task, context.why, error) if error && context.cancelled?
      return ends.failed(task, error) if error
      return if context.why == "lost"
      return ends.ended_otherwise(task, value, recorder.max_payload) if value.is_a?(Runtime::Ending)

      ends.completed(task, value, recorder.max_payload)
    end

    def spawn_with(ended, context, recorder)
      Runtime::Ends.with_spawned(ended, context.task, context.spawned, recorder.max_payload, {})
    end

    private_class_method :stopping, :outcome, :end_of, :spawn_with
  end
end
