# frozen_string_literal: true

require "forwardable"
require_relative "cancellation"
require_relative "requests"
require_relative "runtime/ends"
require_relative "task_logger"

module Onward
  # The context of an attempt: the task's fields, and the calls that a handler makes beside its work.
  #
  # A context belongs to one attempt. Its methods may be called from any thread of the worker's process.
  class Context
    extend Forwardable
    include Cancellation

    PROGRESS_MESSAGE_BYTES = 1_024

    # The task as the gateway sent it.
    attr_reader :task

    # @api private
    attr_reader :entry, :progress_fields, :spawned

    def_delegators :@task, :kind, :queue, :priority, :attempt, :group, :key, :parent, :scheduled_at, :tags, :headers,
                   :trace

    # The id of the task; never used twice, so it is a good idempotency key.
    def_delegator :@task, :task, :task_id

    # The token by which another program completes the task after `later`.
    def_delegator :@task, :token

    def initialize(task, runtime, entry = nil)
      @task = task
      @runtime = runtime
      @entry = entry
      @spawned = []
      @saved = task.checkpoint
      @deadline = task.deadline && (monotonic + task.deadline)
    end

    # The seconds until the attempt is stopped, or nil without a time limit.
    def remaining = @deadline && [0.0, @deadline - monotonic].max

    # The `state` of the worker, which every handler shares.
    def state = @runtime.state

    # Values that middleware hands to the handler; one Hash for each attempt.
    def local = (@local ||= {})

    # The payload as that of a workflow's step.
    def step = (@step ||= Step.new(Payload.decode(@task.payload)))

    # Returns the result of an earlier step of the workflow by its name.
    def step_result(name) = step.result(name)

    # A logger whose lines name the task, its kind and the attempt.
    def logger = (@logger ||= TaskLogger.new(@runtime.logger, @task))

    # Reports progress: a fraction from 0 to 1, a message, bytes done and in all.
    #
    # It never blocks and may be called often; the newest values are sent about ten times a second.
    # It counts as a heartbeat.
    def progress(fraction = nil, message = nil, done: nil, total: nil)
      raise ArgumentError, "fraction is #{fraction}; it must be from 0 to 1" if fraction && !(0..1).cover?(fraction)

      message &&= Runtime::Ends.cut(message, PROGRESS_MESSAGE_BYTES)
      fields = { fraction: fraction, message: message, done: done, total: total }.compact
      # The writer reads the Hash on its own thread, so it is replaced and never changed.
      @progress_fields = @progress_fields ? @progress_fields.merge(fields) : fields
      heartbeat
    end

    # Reports that the handler still works, for a task with a heartbeat limit.
    def heartbeat
      @runtime.touch(self)
      nil
    end

    # Keeps a value for the next attempt. It is durable when the call returns.
    def checkpoint(value)
      @runtime.check_process
      payload = Payload.encode(value)
      if payload.bytesize > @runtime.max_payload
        raise ArgumentError, "the checkpoint of task #{task_id} has #{payload.bytesize} bytes, more than " \
                             "#{@runtime.max_payload}; store the data elsewhere and keep a reference"
      end

      @runtime.save_checkpoint(self, payload).value
      @saved = payload
      nil
    end

    # Returns the checkpoint of an earlier attempt or of `await_children`; nil without one.
    def last_checkpoint(symbols: false) = @saved && Payload.decode(@saved, symbols: symbols)

    # Returns whether there is a checkpoint.
    def resumed? = !@saved.nil?

    # Submits a child with the end of this attempt, in one commit; a failed attempt submits none.
    #
    # `options` are those of NewTask.
    #
    # Raises ArgumentError beyond 1 024 tasks.
    def spawn(task, payload = nil, **options)
      if @spawned.size >= Protocol::PAYLOADS
        raise ArgumentError, "an attempt spawns at most #{Protocol::PAYLOADS} tasks; submit more with `submit_many`"
      end

      child = Requests.new_task(task, payload, options)
      need("headers") unless child.headers.empty?
      @spawned << child
      nil
    end

    # Returns the value by which a handler ends without a result: `next ctx.later(within: 60)`.
    #
    # The task waits until another program completes it by `token`, for at most `within` seconds.
    def later(within: nil)
      fields = within ? { within_ms: Checks.milliseconds("within", within, 1) } : {}
      Runtime::Ending.new("later", fields)
    end

    # Returns the value by which a handler waits for its children: `next ctx.await_children("listed")`.
    #
    # The handler runs again when they have ended, and finds `checkpoint` in `last_checkpoint`. With
    # `fail_fast` the first child that does not complete fails the task.
    def await_children(checkpoint = nil, fail_fast: false)
      Runtime::Ending.new("children", { on_failure: fail_fast ? "fail" : "ignore" }, Payload.encode(checkpoint))
    end

    # Returns the value by which the task continues in another queue: `next ctx.move("slow")`.
    def move(queue) = Runtime::Ending.new("move", { queue: Checks.name("queue", queue) })

    # Returns the value by which a handler gives the task back, and the attempt is not counted.
    def release = Runtime::Ending.new("release", { why: "given_up" })

    # Submits a task at once; give it a key, because the next attempt may submit it again.
    #
    # With `child` it becomes a child of this task. `options` are those of NewTask.
    def submit(task, payload = nil, child: false, **options)
      submit_many([Requests.new_task(task, payload, options)], child: child).first
    end

    # Submits up to 1 024 tasks (NewTask) in one commit: all or none.
    def submit_many(tasks, child: false)
      need("submit")
      unless (1..Protocol::PAYLOADS).cover?(tasks.size)
        raise ArgumentError, "#{tasks.size} tasks; a submit has 1 to #{Protocol::PAYLOADS}"
      end

      entries, payloads = Requests.encode_tasks(tasks, @runtime.features, @runtime.max_payload, trace)
      header = { t: "submit", tasks: entries }
      header[:parent] = { task: @task.task, fence: @task.fence } if child
      Requests.read_submitted(@runtime.request(header, payloads, resend: tasks.all?(&:key)).value)
    end

    # Returns the state and result of a task, after waiting up to `wait` seconds (60 at most).
    def result(task, wait: 0) = Requests.read_result(task, ask("result", Requests.result_fields(task, wait)))

    # Returns the children of this task, in the order of their ids.
    def children = pages("children") { |reply| Requests.read_children(reply) }

    # Returns the payloads of the aggregated tasks of which this one is the batch.
    def items = pages("items") { |reply| Requests.read_items(reply) }

    private

    def ask(what, fields)
      need("ask")
      @runtime.request({ t: "ask", what: what, **fields }, [], resend: true).value
    end

    def pages(what)
      found = []
      after = nil
      loop do
        reply = ask(what, { task: task_id, after: after }.compact)
        found.concat(yield(reply))
        after = Requests.next_page(reply)
        return found if after.nil?
      end
    end

    def need(feature)
      @runtime.check_process
      return if @runtime.features.include?(feature)

      raise Refused.new("unsupported", "the gateway has no feature `#{feature}`", "upgrade the gateway")
    end

    def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
