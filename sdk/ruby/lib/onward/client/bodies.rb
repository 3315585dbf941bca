# frozen_string_literal: true

require "json"
require_relative "../payload"
require_relative "../tasks"
require_relative "types"

module Onward
  # The bodies of the HTTP API, from values and back.
  module Bodies
    TIMES = { delay_ms: :after, ttl_ms: :ttl, timeout_ms: :timeout, heartbeat_ms: :heartbeat_timeout,
              keep_key_ms: :keep_key_for }.freeze

    module_function

    # Returns a task as the HTTP API takes it.
    #
    # Raises ArgumentError for an option that the API does not take.
    def task(new)
      header = new.to_header
      if header.key?(:headers)
        raise ArgumentError, "a task that a client submits has no headers; use tags, or put them into the payload"
      end

      body = header.to_h { |name, value| TIMES.key?(name) ? [TIMES[name], "#{value}ms"] : [name, value] }
      body[:retry] = retry_policy(header[:retry]) if header.key?(:retry)
      body.merge(payload(new.payload))
    end

    # Returns a value as a body. Raises PayloadError if a payload has no JSON form.
    def encode(body) = Payload.encode(body)

    # Returns the result of a submit or start.
    def submitted(body) = Submitted.new(body["id"], body.fetch("outcome", "inserted"))

    # Returns a run and its steps.
    def run(body)
      steps = body["steps"].map { |step| RunStep.new(**known(RunStep, step)) }
      Run.new(task: body["id"], steps: steps, **known(Run, body.slice("workflow", "phase", "is_ended")))
    end

    # Returns the state of an orchestration.
    def orchestration(body)
      task = body["task"]
      Orchestration.new(task: task["id"], state: task["state"], paused: body["paused"], awaits: body["awaits"],
                        status: content(body["status"]), values: body["values"].transform_values { content(_1) })
    end

    # Returns an event of a stream from the fields of its message, or nil if it has none.
    def event(message)
      return Event.new(cursor: message["id"], change: "gap") if message["event"] == "gap"

      Event.new(**known(Event, JSON.parse(message["data"]))) if message.key?("data")
    end

    def payload(value)
      return {} if value.nil?
      return { payload_base64: [value].pack("m0") } if value.is_a?(String) && value.encoding == Encoding::BINARY

      { payload: value }
    end

    def retry_policy(header)
      times = ->(*names) { names.to_h { |name| [name, "#{header[:"#{name}_ms"]}ms"] } }
      backoff =
        case header[:backoff]
        when "constant" then { constant: { delay: "#{header[:initial_ms]}ms" } }
        when "linear" then { linear: times.call(:initial, :increment, :maximum) }
        else
          name = header[:backoff] == "jitter" ? :exponential_jitter : :exponential
          { name => times.call(:initial, :maximum).merge(factor: header[:factor]) }
        end
      { attempts: header[:attempts], backoff: backoff }
    end

    def known(form, fields) = fields.transform_keys(&:to_sym).slice(*form.members)

    def content(content)
      return nil if content.nil?

      content.key?("base64") ? content["base64"].unpack1("m0") : content["json"]
    end

    private_class_method :payload, :retry_policy, :known, :content
  end
  private_constant :Bodies
end
