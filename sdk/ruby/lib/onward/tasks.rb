# frozen_string_literal: true

require_relative "payload"
require_relative "protocol/frames"

module Onward
  # Checks of names and times that a program states.
  module Checks
    NAME_BYTES = 128

    module_function

    # Returns a time in milliseconds, checked against the least one.
    def milliseconds(name, seconds, least)
      value = (seconds * 1000).round
      raise ArgumentError, "#{name} is #{seconds} s; it must be at least #{least} ms" if value < least

      value
    end

    # Returns a name as a String if its length is within the bound.
    def name(what, value, longest = NAME_BYTES)
      text = value.to_s.encode(Encoding::UTF_8)
      return text if (1..longest).cover?(text.bytesize) && text.valid_encoding?

      raise ArgumentError, "#{what} has #{text.bytesize} bytes; it must have 1 to #{longest} bytes of UTF-8"
    end
  end

  # A retry policy: the number of attempts, and the delay between them in seconds.
  #
  # `attempts` counts the first one. `jitter` waits a random time up to that of `exponential`.
  # `increment` is that of `linear`, and `initial` by default.
  class Retry
    BACKOFFS = %w[constant linear exponential jitter].freeze

    # Returns a retry policy from any of its forms: itself, the number of attempts, or its fields.
    def self.of(value)
      case value
      when Retry then value
      when Integer then new(attempts: value)
      when Hash then new(**value.transform_keys(&:to_sym))
      else raise ArgumentError, "retry is #{value.inspect[0, 80]}; use a number of attempts or a Hash of fields"
      end
    end

    def initialize(attempts: 5, backoff: "jitter", initial: 1.0, factor: 2.0, increment: nil, maximum: 600.0)
      @attempts = attempts
      @backoff = backoff.to_s
      @initial = initial
      @factor = factor
      @increment = increment || initial
      @maximum = maximum
      check
    end

    # Returns the policy as the protocol writes it.
    def to_header
      header = { attempts: @attempts, backoff: @backoff, initial_ms: Checks.milliseconds("initial", @initial, 0) }
      header[:factor] = @factor if %w[exponential jitter].include?(@backoff)
      header[:increment_ms] = Checks.milliseconds("increment", @increment, 0) if @backoff == "linear"
      header[:maximum_ms] = Checks.milliseconds("maximum", @maximum, 0) unless @backoff == "constant"
      header
    end

    private

    def check
      unless @attempts.is_a?(Integer) && @attempts >= 1
        raise ArgumentError, "attempts is #{@attempts}; it counts the first one, so it is at least 1"
      end
      unless BACKOFFS.include?(@backoff)
        raise ArgumentError, "backoff is #{@backoff}; it must be one of #{BACKOFFS.join(', ')}"
      end
      raise ArgumentError, "factor is #{@factor}; it must be at least 1" if @factor < 1
    end
  end

  # A task to submit. Times are in seconds.
  #
  # `payload` is a binary String, or anything that can be written as JSON. `key` makes the task
  # unique among the active tasks of its kind; `keep_key` keeps it taken for a time after the end. A
  # higher `priority`, from 0 to 255, runs sooner. `headers` needs a gateway with the feature
  # `headers`.
  class NewTask
    KEY_BYTES = 512
    TAGS = 32
    DUPLICATES = %w[skip supersede reject requeue].freeze

    attr_reader :kind, :payload, :key, :headers

    def initialize(kind, payload = nil, key: nil, headers: {}, **options)
      unknown = options.keys - OPTIONS
      raise ArgumentError, unknown_options(kind, unknown) unless unknown.empty?

      @kind = Checks.name("kind", kind)
      @payload = payload
      @key = key
      @headers = headers.to_h { |name, value| [name.to_s, value.to_s] }
      @options = options
      @header = build.freeze
    end

    # Returns a new Hash with the task as the protocol writes it, without its payload.
    def to_header = @header.dup

    # Returns the payload in bytes; no payload is empty.
    def encoded_payload = @payload.nil? ? Protocol::EMPTY : Payload.encode(@payload)

    OPTIONS = %i[queue priority keep_key on_duplicate delay ttl timeout heartbeat retry group affinity tags].freeze
    private_constant :OPTIONS

    private

    def unknown_options(kind, unknown)
      "a task of kind `#{kind}` has no option #{unknown.join(', ')}; write a payload that is a Hash in braces. " \
        "Options: key, headers, #{OPTIONS.join(', ')}"
    end

    def build
      header = { kind: @kind }
      %i[queue group affinity].each { |name| header[name] = Checks.name(name, @options[name]) if @options[name] }
      header[:priority] = priority if @options[:priority]
      header[:retry] = Retry.of(@options[:retry]).to_header if @options[:retry]
      header[:tags] = tags if @options[:tags]
      header[:headers] = @headers unless @headers.empty?
      header.merge(times, key_fields)
    end

    def times
      { delay: 0, ttl: 1, timeout: 1, heartbeat: 1 }.filter_map do |name, least|
        [:"#{name}_ms", Checks.milliseconds(name, @options[name], least)] if @options[name]
      end.to_h
    end

    def priority
      value = @options[:priority]
      return value if value.is_a?(Integer) && (0..255).cover?(value)

      raise ArgumentError, "priority is #{value}; it must be 0 to 255"
    end

    def tags
      tags = @options[:tags].to_h { |name, value| [name.to_s, value.to_s] }
      raise ArgumentError, "a task has #{tags.size} tags; it may have #{TAGS}" if tags.size > TAGS

      tags
    end

    def key_fields
      if @key.nil?
        found = %i[keep_key on_duplicate].find { |name| @options.key?(name) }
        raise ArgumentError, "#{found} has no effect without a key; state `key:` too" if found

        return {}
      end
      mode = @options.fetch(:on_duplicate, "skip").to_s
      unless DUPLICATES.include?(mode)
        raise ArgumentError, "on_duplicate is #{mode}; it must be one of #{DUPLICATES.join(', ')}"
      end

      { key: Checks.name("key", @key, KEY_BYTES), on_duplicate: mode,
        keep_key_ms: Checks.milliseconds("keep_key", @options.fetch(:keep_key, 0), 0) }
    end
  end

  # The result of a submit.
  #
  # `result` is `inserted`, `duplicate`, `priority_raised`, `requeued`, `superseded` or `rejected`.
  # `task` is the id of the new task, or of the existing one.
  Submitted = Struct.new(:task, :result) do
    # Returns whether a task was inserted.
    def new? = %w[inserted superseded].include?(result)
  end
end
