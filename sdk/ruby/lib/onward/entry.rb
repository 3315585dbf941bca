# frozen_string_literal: true

require_relative "input"
require_relative "tasks"

module Onward
  # A registered handler: its kind, its options, and its call within the middleware.
  # @api private
  class Entry
    LIMIT = 65_536

    attr_reader :kind, :header, :limit, :parked
    attr_accessor :running

    # `target` is called with as many of (argument, context) as it takes. `read` makes the argument
    # from the context, and `write` the result from the argument and what the handler returned.
    def initialize(kind, target, read:, write: nil, limit: nil, retry: nil, timeout: nil, heartbeat: nil)
      @kind = Checks.name("kind", kind)
      @call = Entry.caller_of(@kind, target)
      @read = read
      @write = write
      @limit = limit
      @header = header_of(limit, binding.local_variable_get(:retry), timeout, heartbeat).freeze
      @running = 0
      @parked = []
    end

    # Returns a copy whose call runs within the middleware; the first one is outermost.
    def within(middleware)
      inner = method(:invoke)
      chain = middleware.reverse.reduce(inner) do |call, around|
        ->(context) { around.call(context, -> { call.call(context) }) }
      end
      copy = dup
      copy.reset(middleware.empty? ? nil : chain)
      copy
    end

    # Runs the handler for a context and returns its result.
    def call(context) = @chain ? @chain.call(context) : invoke(context)

    # Returns a callable of two arguments that calls the target with as many as it takes.
    def self.caller_of(kind, target)
      return class_caller(kind, target) if target.is_a?(Class)
      return target if target.is_a?(Proc) && !target.lambda?

      method = target.is_a?(Proc) || target.is_a?(Method) ? target : callable(kind, target)
      case arity(method)
      when 0 then ->(_, _) { method.call }
      when 1 then ->(argument, _) { method.call(argument) }
      when 2 then ->(argument, context) { method.call(argument, context) }
      else raise ArgumentError, "the handler of `#{kind}` takes #{method.arity} arguments; it may take (task, context)"
      end
    end

    # A class makes one object for each attempt, so that its instance variables are the attempt's.
    def self.class_caller(kind, target)
      raise ArgumentError, "the class #{target} for `#{kind}` has no method `call`" unless target.method_defined?(:call)

      count = arity(target.instance_method(:call))
      ->(argument, context) { target.new.call(*[argument, context].first(count)) }
    end

    def self.callable(kind, target)
      return target.method(:call) if target.respond_to?(:call)

      raise ArgumentError,
            "the handler of `#{kind}` is a #{target.class}; give a block, a class, or an object with `call`"
    end

    def self.arity(method)
      # `&:name` calls a method of the argument, which gets no context.
      return 1 if method.parameters == [[:req], [:rest]]
      return 2 if method.arity.negative? && method.arity >= -3

      method.arity
    end

    private_class_method :class_caller, :callable, :arity

    protected

    def reset(chain)
      @chain = chain
      @running = 0
      @parked = []
    end

    private

    def invoke(context)
      argument = @read.call(context)
      value = @call.call(argument, context)
      @write ? @write.call(argument, value) : value
    end

    def header_of(limit, policy, timeout, heartbeat)
      header = {}
      if limit
        unless limit.is_a?(Integer) && (1..LIMIT).cover?(limit)
          raise ArgumentError, "limit is #{limit}; it must be from 1 to #{LIMIT}"
        end

        header[:limit] = limit
      end
      header[:retry] = Retry.of(policy).to_header if policy
      header[:timeout_ms] = Checks.milliseconds("timeout", timeout, 1) if timeout
      header[:heartbeat_ms] = Checks.milliseconds("heartbeat", heartbeat, 1) if heartbeat
      header
    end
  end
end
