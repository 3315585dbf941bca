# frozen_string_literal: true

require_relative "../results"
require_relative "errors"

module Onward
  # A task's state, and its result or error if it has ended.
  class TaskOutcome < TaskResult
    # The states, and the names of the transitions, that end a task.
    ENDED = %w[completed failed dead cancelled expired].freeze

    # Returns whether the task has ended, in any way.
    def ended? = ENDED.include?(state)

    # Returns the JSON value of the result, with Symbol keys if `symbols` is true.
    #
    # Raises TaskFailed if the task is not completed.
    def value(symbols: false)
      raise TaskFailed.new(task, state, error) unless state == "completed"

      super
    end
  end

  # One transition of one task.
  #
  # `change` is such as `submitted`, `started` or `completed`. `cursor` is the position behind the
  # event, from which `watch(after: …)` continues. An event with the change `gap` has no task: the
  # server removed events before they were read.
  Event = Struct.new(:cursor, :change, :task, :kind, :queue, :at, :attempt, keyword_init: true) do
    # Returns whether the task has ended by this transition.
    def end? = TaskOutcome::ENDED.include?(change)
  end

  # A step of a run of a workflow.
  RunStep = Struct.new(:name, :state, :attempts, :depends_on, :reason, :question, :task, keyword_init: true)

  # A run of a workflow. Each step follows those that it depends on.
  Run = Struct.new(:task, :workflow, :phase, :is_ended, :steps, keyword_init: true) do
    # Returns whether the run has ended.
    def ended? = is_ended

    # Returns a step by its name. Raises KeyError if there is none.
    def step(name)
      steps.find { |step| step.name == name.to_s } or
        raise KeyError, "run #{task} has no step `#{name}`; steps: #{steps.map(&:name).join(', ')}"
    end
  end

  # The state of an orchestration: what it awaits, and what its code published.
  class Orchestration
    attr_reader :task, :state, :awaits, :status, :values

    def initialize(task:, state:, paused:, awaits:, status:, values:)
      @task = task
      @state = state
      @paused = paused
      @awaits = awaits
      @status = status
      @values = values
    end

    # Returns whether it is paused.
    def paused? = @paused
  end
end
