# frozen_string_literal: true

require "erb"
require "json"
require "securerandom"
require "uri"
require_relative "client/bodies"
require_relative "client/transport"
require_relative "client/types"
require_relative "client/watch"

module Onward
  # A client of `onward serve`, for any number of threads.
  #
  # `url` is by default ONWARD_URL, or `http://127.0.0.1:7070`. `key` is by default ONWARD_KEY. Without
  # a key, a client of a server on this machine reads the key file that the server keeps beside its
  # store (`key_file`, by default that of ONWARD_STORE or `onward.db`).
  #
  # A request that gets no response, or is refused for lack of room, is sent again for `retry_for`
  # seconds. Submits and starts carry an idempotency key, so that a repeat has no second effect.
  # `timeout` is the longest time for the response to one attempt, in seconds, without that of a wait.
  class Client
    # The longest time for which one request waits, in seconds.
    WAIT = 30.0

    def initialize(url = nil, key = nil, key_file: nil, timeout: 30, retry_for: 30)
      unless timeout.positive? && !retry_for.negative?
        raise ArgumentError, "timeout is #{timeout} s and retry_for #{retry_for} s; they must be positive"
      end

      @http = Transport.new(url, key, key_file: key_file, timeout: timeout, retry_for: retry_for)
    end

    # Returns the address of the server.
    def url = @http.url

    # Closes the idle connections.
    def close = @http.close

    # Submits a task, which is durable when the call returns.
    #
    # `options` are those of NewTask, such as `queue:`, `priority:`, `key:` and `retry:`. State an
    # `idempotency_key` if the program may repeat the call after it was restarted. Write a payload
    # that is a Hash in braces.
    #
    # Raises Problem, Unavailable, PayloadError, and ArgumentError for an option out of its range.
    def submit(kind, payload = nil, idempotency_key: nil, **options)
      Bodies.submitted(create("/v1/tasks", Bodies.task(new_task(kind, payload, options)), idempotency_key))
    end

    # Submits up to 10 000 tasks in one commit, all or none. Returns their results in order.
    def submit_many(tasks, idempotency_key: nil)
      body = { tasks: tasks.map { |task| Bodies.task(task) } }
      create("/v1/tasks:batch", body, idempotency_key)["tasks"].map { |one| Bodies.submitted(one) }
    end

    # Submits a task and waits for its end, in one request if the task ends soon.
    #
    # Raises WaitTimeout if it has not ended `within` so many seconds.
    def submit_and_wait(kind, payload = nil, within: nil, idempotency_key: nil, **options)
      deadline = deadline_of(within)
      body = Bodies.task(new_task(kind, payload, options))
      reply = create("/v1/tasks", body, idempotency_key, wait: left(deadline))
      return outcome(reply) if TaskOutcome::ENDED.include?(reply["state"])

      wait_until(reply["id"], deadline, within)
    end

    # Waits for the end of a task, run or orchestration, without polling. The end may be a failure.
    #
    # Raises WaitTimeout if it has not ended `within` so many seconds.
    def wait(task, within: nil) = wait_until(id(task), deadline_of(within), within)

    # Returns the state of a task now, and its result if it is completed.
    def result(task) = outcome(get("/v1/tasks/#{path(id(task))}"))

    # Cancels a task, run or orchestration. Returns `ended`, or `requested` if it runs and was asked
    # to stop. Raises Conflict if it has ended in another way.
    def cancel(task)
      where = "/v1/tasks/#{path(id(task))}"
      JSON.parse(@http.send("POST", "#{where}/cancel", body: "{}"))["effect"]
    rescue Conflict
      # An earlier attempt of this request may have cancelled it.
      raise unless get(where)["state"] == "cancelled"

      "ended"
    end

    # Sends a signal to a step that waits in a run, or to an orchestration.
    #
    # Raises Unavailable if the connection is lost before the response: a second signal might count.
    def signal(task, name, payload = nil)
      send_signal("runs", task, name, payload)
    rescue NotFound
      send_signal("orchestrations", task, name, payload)
    end

    # Starts a run of a stored workflow with an input. `version` is the label of one that is not the
    # newest. `key` makes the run unique if the template has no key of its own.
    def start(workflow, payload = nil, version: nil, environment: nil, key: nil, idempotency_key: nil)
      body = { input: payload, environment: environment, key: key }.compact
      name = version ? "#{workflow}@#{version}" : workflow.to_s
      Bodies.submitted(create("/v1/templates/#{path(name)}/runs", body, idempotency_key))
    end

    # Starts an orchestration. `key` makes it unique among the active ones of its kind.
    def start_orchestration(kind, payload = nil, key: nil, idempotency_key: nil)
      body = { kind: kind.to_s, payload: payload }
      body[:key] = key if key
      Bodies.submitted(create("/v1/orchestrations", body, idempotency_key))
    end

    # Returns a run of a workflow and its steps.
    def run(task) = Bodies.run(get("/v1/runs/#{path(id(task))}"))

    # Returns what an orchestration awaits, and the status and values that it published.
    def query(task) = Bodies.orchestration(get("/v1/orchestrations/#{path(id(task))}"))

    # Returns the events of one task or of all, as they come.
    #
    # It begins at the oldest event that is kept, or behind the cursor `after`. `kinds`, `queue` and
    # `ends` (ends of tasks only) select events, and cannot be used with a task.
    def watch(task = nil, kinds: [], queue: nil, ends: false, after: nil)
      query = URI.encode_www_form({ kinds: kinds.any? ? kinds.join(",") : nil, queue: queue,
                                    ends: ends ? true : nil }.compact)
      if task && !query.empty?
        raise ArgumentError, "kinds, queue and ends select among all tasks; leave them out with a task"
      end

      where = task ? "/v1/tasks/#{path(id(task))}/events" : "/v1/events"
      Watch.new(@http, query.empty? ? where : "#{where}?#{query}", after)
    end

    private

    def new_task(kind, payload, options)
      return NewTask.new(kind, payload, **options) unless kind.is_a?(NewTask)
      raise ArgumentError, "a NewTask has its payload and options itself" unless payload.nil? && options.empty?

      kind
    end

    def send_signal(what, task, name, payload)
      where = "/v1/#{what}/#{path(id(task))}/signals/#{path(name.to_s)}"
      @http.send("POST", where, body: Bodies.encode(payload), repeatable: false)
      nil
    end

    def wait_until(task, deadline, within)
      pause = Attempts::FIRST
      loop do
        asked = Attempts.now
        wait = left(deadline)
        record = get("/v1/tasks/#{path(task)}", wait: wait)
        return outcome(record) if TaskOutcome::ENDED.include?(record["state"])

        now = Attempts.now
        raise WaitTimeout.new(task, within) if deadline && now >= deadline
        next if now - asked >= wait / 2

        # A server that stops, or one behind a proxy, may respond before the time.
        sleep(deadline ? [pause, deadline - now].min : pause)
        pause = [2 * pause, Attempts::LONGEST].min
      end
    end

    def outcome(record)
      # The task has the result as JSON, in which long numbers lose digits. This is as it is.
      payload = @http.send("GET", "/v1/tasks/#{path(record['id'])}/result") if record["state"] == "completed"
      TaskOutcome.new(record["id"], record["state"], payload, record["error"], kind: record["kind"])
    end

    def get(where, wait: 0)
      headers = wait.positive? ? { "Prefer" => prefer(wait) } : {}
      JSON.parse(@http.send("GET", where, headers: headers, wait: wait))
    end

    def create(where, body, key, wait: 0)
      headers = { "Idempotency-Key" => key || SecureRandom.uuid }
      headers["Prefer"] = prefer(wait) if wait.positive?
      JSON.parse(@http.send("POST", where, body: Bodies.encode(body), headers: headers, wait: wait))
    end

    def id(task) = task.is_a?(Submitted) ? task.task : task.to_s

    def path(text) = ERB::Util.url_encode(text).gsub("%40", "@")

    def prefer(wait) = "wait=#{[1, (wait * 1000).round].max}ms"

    def deadline_of(within) = within && (Attempts.now + within)

    def left(deadline) = deadline ? (deadline - Attempts.now).clamp(0.0, WAIT) : WAIT
  end
end
