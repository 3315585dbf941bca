# frozen_string_literal: true

require_relative "../errors"

module Onward
  # The server refused a request, or failed in it.
  #
  # `code` is stable and for programs; `text` and `remedy` are for people. `status` is that of HTTP,
  # `field` the part of the request at fault, `request_id` the number in the log of the server,
  # `retry_after` the seconds after which the server asks for another attempt.
  class Problem < Refused
    attr_reader :status, :field, :request_id, :retry_after

    def initialize(code, text, remedy = "", status:, field: nil, request_id: nil, retry_after: nil)
      super(code, text, remedy)
      @status = status
      @field = field
      @request_id = request_id
      @retry_after = retry_after
    end
  end

  # The task, run, template or path does not exist (404).
  class NotFound < Problem; end

  # The state of the thing does not allow the request (409, 412).
  class Conflict < Problem; end

  # The request breaks a rule (400, 413, 415, 422).
  class Invalid < Problem; end

  # The key is missing, not valid, or may not do this (401, 403).
  class Denied < Problem; end

  # The server stops, or has too much to do, and did not recover in time (429, 503).
  class Overloaded < Problem; end

  # A task ended without being completed. `state` is how, `error` its last error.
  class TaskFailed < Error
    attr_reader :task, :state, :error

    def initialize(task, state, error)
      super(error ? "task #{task} is #{state}: #{error}" : "task #{task} is #{state}")
      @task = task
      @state = state
      @error = error
    end
  end

  # A task has not ended within the time. It goes on; wait for it again by its id, `task`.
  class WaitTimeout < Error
    attr_reader :task

    def initialize(task, seconds)
      super("task #{task} has not ended within #{seconds} s; wait for it again, or cancel it")
      @task = task
    end
  end
end
