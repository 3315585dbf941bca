# frozen_string_literal: true

require_relative "payload"

module Onward
  # A task's state, and its result or error if it has ended.
  class TaskResult
    attr_reader :task, :state, :payload, :error, :kind

    def initialize(task, state, payload = nil, error = nil, kind: nil)
      @task = task
      @state = state
      @payload = payload
      @error = error
      @kind = kind
    end

    # Returns the JSON value of the result, with Symbol keys if `symbols` is true.
    def value(symbols: false) = Payload.decode(@payload || "", symbols: symbols)
  end

  # The payload of a workflow's step without `with`: the input of the run, and earlier results.
  class Step
    attr_reader :input, :payload, :results

    def initialize(payload)
      @payload = payload
      fields = payload.is_a?(Hash) ? payload : {}
      @input = fields.fetch("input", payload)
      @results = fields["results"] || {}
    end

    # Returns the result of an earlier step by its name.
    #
    # Raises KeyError with the known names if no ancestor has this name.
    def result(name)
      @results.fetch(name.to_s) do
        known = @results.keys.sort.join(", ")
        raise KeyError, "no result of a step `#{name}`; results of its ancestors: #{known.empty? ? 'none' : known}"
      end
    end
  end
end
