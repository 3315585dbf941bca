# frozen_string_literal: true

require "logger"
require_relative "batch"
require_relative "entry"
require_relative "handler"
require_relative "runtime/run"

module Onward
  # A set of handlers, and the connection to the gateway that sends their tasks.
  class Worker
    DEFAULT_SLOTS = 8

    Settings = Struct.new(:name, :slots, :prefetch, :grace, :key, :state, :logger, keyword_init: true)
    private_constant :Settings

    # The `state` and `logger` that were given.
    attr_reader :state, :logger

    # `gateway` is `child`, `ipc://PATH` or `tcp://HOST:PORT`; by default ONWARD_GATEWAY states it.
    # `slots` is the number of handlers that run at once, each on a thread; by default ONWARD_SLOTS,
    # which the gateway sets, or else 8. `prefetch` tasks are fetched ahead of free slots: it makes
    # short tasks faster, and tasks wait in this process although another worker may be idle. `grace`
    # is the time in seconds that running handlers have after SIGTERM or SIGINT. `key` is the worker's
    # secret, by default ONWARD_KEY. `state` is any object, as `ctx.state` in every handler. `name`
    # appears in logs and lists. `logger` is a Logger, by default one of level INFO on standard error.
    def initialize(gateway: nil, name: "", slots: nil, prefetch: 0, grace: 30.0, key: nil, state: nil, logger: nil)
      @gateway = gateway
      @state = state
      @logger = logger || Logger.new($stderr, level: Logger::INFO)
      slots ||= slots_of(ENV.fetch("ONWARD_SLOTS", nil))
      check(slots, prefetch, grace, name)
      @settings = Settings.new(name: name, slots: slots, prefetch: prefetch, grace: grace, key: key, state: state,
                               logger: @logger)
      @entries = {}
      @middleware = []
      @lock = Mutex.new
    end

    # Registers the handler of a kind: a block, an object with `call`, or a class whose objects have
    # it. It is called with the task's input and the context, or with fewer of them.
    #
    # `input` states what the handler gets: `:json` (default; objects with String keys), `:symbols`
    # (with Symbol keys), `:bytes`, a Struct with `keyword_init`, or a callable that takes the JSON
    # value and returns the input. A payload that it rejects fails the task without a retry.
    #
    # The result becomes JSON, or stays as it is if it is a binary String. At most `limit` of the
    # worker's handlers of this kind run at once. `retry` (a number of attempts, or a Hash of Retry's
    # fields), `timeout` and `heartbeat` (seconds) apply to tasks that were submitted without their
    # own. Leave a block by `next value`.
    def handler(kind, callable = nil, input: :json, **options, &block)
      read = Input.reader(kind, input)
      add(kind, callable, block, read: ->(context) { read.call(context.task.payload) }, **options)
    end

    # Registers a class of Handler.
    def register(handler)
      unless handler.is_a?(Class) && handler < Handler
        raise ArgumentError, "#{handler.inspect[0, 80]} is no class of Onward::Handler"
      end
      raise ArgumentError, "#{handler} has no kind; write `kind \"name\"` in the class" if handler.kind.nil?

      handler(handler.kind, handler, **handler.options)
    end

    # Registers a block that chooses which steps of a workflow come next.
    #
    # It is called with a Step (input and earlier results) and the context, and returns one of
    # `choices`, a list of them, or nil for no step. A choice outside them fails the step.
    def decision(kind, callable = nil, choices:, **options, &block)
      allowed = choices.map(&:to_s)
      write = ->(_, chosen) { chosen.is_a?(Runtime::Ending) ? chosen : chosen_of(kind, chosen, allowed) }
      add(kind, callable, block, read: ->(context) { step_of(context) }, write: write, **options)
    end

    # Registers a block that works through a cursor, with a checkpoint after `every` positions.
    #
    # It is called with a Batch and the context.
    def batch(kind, callable = nil, every: 100, **options, &block)
      raise ArgumentError, "every is #{every}; it must be at least 1 position" unless every.is_a?(Integer) && every >= 1

      write = ->(batch, value) { value.nil? || value.equal?(batch) ? batch.partial : value }
      add(kind, callable, block, read: ->(context) { Batch.new(context, every) }, write: write, **options)
    end

    # Registers a block that runs around every handler, with the context and the rest of the call.
    #
    # It returns the result. The first one is outermost.
    #
    #   app.middleware do |ctx, call|
    #     began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    #     call.call
    #   ensure
    #     ctx.logger.info("took #{Process.clock_gettime(Process::CLOCK_MONOTONIC) - began} s")
    #   end
    def middleware(callable = nil, &block)
      around = callable || block
      raise ArgumentError, "middleware needs a block, or an object with `call`" unless around.respond_to?(:call)
      raise Error, "the worker runs already; register the middleware before" if @run

      @middleware << around
      self
    end

    # The kinds that have a handler.
    def kinds = @entries.keys

    # Returns the handler of a kind within the middleware. For the test harness.
    # @api private
    def entry(kind)
      @entries.fetch(kind.to_s) do
        raise KeyError, "no handler for the kind `#{kind}`; kinds: #{kinds.empty? ? 'none' : kinds.join(', ')}"
      end.within(@middleware)
    end

    # Runs until SIGTERM, SIGINT, `stop`, or the gateway's drain of a child.
    #
    # Running handlers have `grace` seconds then, and 5 more to follow the request to stop. Exits with
    # 1 if some do not, if the gateway refuses the worker, or if the parent of a child has died.
    def run
      serve
    rescue Error, SystemCallError, IOError, ArgumentError => e
      @logger.error("onward: the worker ends: #{e.message}")
      exit(1)
    end

    # Does what `run` does, but raises the error that ends it.
    #
    # Raises Refused if the gateway refuses the worker, SystemCallError if the parent of a child has
    # died, Error if handlers did not stop.
    def serve
      raise ArgumentError, "the worker has no handler; register one with `app.handler(\"kind\")`" if @entries.empty?

      run = begin_run
      begin
        error = run.serve
      ensure
        @run = nil
      end
      raise error if error
    end

    # Ends `run` as SIGTERM does. Any thread may call it.
    def stop = @run&.stop

    private

    def begin_run
      address = Protocol::Address.parse(@gateway, ENV)
      @lock.synchronize do
        raise Error, "the worker runs already" if @run

        settings = @settings.dup
        settings.key ||= ENV.fetch("ONWARD_KEY", nil)
        @run = Runtime::Run.new(address, @entries.keys.to_h { |kind| [kind, entry(kind)] }, settings)
      end
    end

    def add(kind, callable, block, **options)
      target = callable || block
      raise ArgumentError, "the handler of `#{kind}` needs a block, a class, or an object with `call`" if target.nil?
      raise Error, "the worker runs already; register `#{kind}` before" if @run
      raise ArgumentError, "the kind `#{kind}` has a handler already" if @entries.key?(kind.to_s)
      raise ArgumentError, "a worker has at most #{Protocol::PAYLOADS} kinds" if @entries.size >= Protocol::PAYLOADS

      @entries[kind.to_s] = Entry.new(kind, target, **options)
      self
    end

    def check(slots, prefetch, grace, name)
      unless slots.is_a?(Integer) && (1..Runtime::Outbox::HELD).cover?(slots)
        raise ArgumentError, "slots is #{slots}; it must be from 1 to #{Runtime::Outbox::HELD}"
      end

      unless prefetch.is_a?(Integer) && prefetch >= 0 && slots + prefetch <= Runtime::Outbox::HELD
        raise ArgumentError,
              "prefetch is #{prefetch}; with #{slots} slots it must be from 0 to #{Runtime::Outbox::HELD - slots}"
      end
      raise ArgumentError, "grace is #{grace}; it must be at least 0 seconds" if grace.negative?

      Checks.name("name", name) unless name.empty?
    end

    def slots_of(text)
      return DEFAULT_SLOTS if text.nil?

      unless text.match?(/\A\d+\z/)
        raise ArgumentError,
              "ONWARD_SLOTS is `#{text}`; it must be an integer of at least 1"
      end

      # A gateway may allow more; this process holds no more than its bound.
      [text.to_i, Runtime::Outbox::HELD].min
    end

    def step_of(context)
      context.step
    rescue PayloadError => e
      raise Fail, e.message
    end

    def chosen_of(kind, chosen, allowed)
      names = Array(chosen).map(&:to_s)
      names.each do |name|
        next if allowed.include?(name)

        raise Fail, "the decision `#{kind}` chose `#{name[0, 80]}`; its choices are #{allowed.join(', ')}"
      end
      { chosen: names }
    end
  end
end
