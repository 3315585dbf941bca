# frozen_string_literal: true

# The driver of sdk/conformance/clients.py: makes the calls of lines of JSON.

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "json"
require "onward"

# Calls of a client.
module Driver
  module_function

  # Returns arguments with Symbol keys, and bytes where they have `$base64`.
  def options(arguments)
    arguments.to_h { |name, value| [name.to_sym, name == "payload" ? bytes_or(value) : value] }
  end

  def bytes_or(value)
    value.is_a?(Hash) && value.key?("$base64") ? value["$base64"].unpack1("m0") : value
  end

  # Returns a result as JSON.
  def plain(result)
    case result
    when Array then result.map { |one| plain(one) }
    when Onward::TaskOutcome
      { task: result.task, state: result.state, error: result.error, payload: result.payload }
    when Onward::Event then result.to_h.compact.merge(is_end: result.end?)
    when Onward::Run then result.to_h.merge(steps: result.steps.map(&:to_h))
    when Onward::Orchestration
      names = %i[task state awaits status values]
      names.to_h { |name| [name, result.public_send(name)] }.merge(paused: result.paused?)
    when Struct then result.to_h
    else result
    end
  end

  def raised(error)
    names = %i[code remedy field status state task request_id]
    fields = names.to_h { |name| [name, error.respond_to?(name) ? error.public_send(name) : nil] }
    { error: error.class.name.delete_prefix("Onward::"), text: error.message }.merge(fields.compact)
  end

  def call(client, name, arguments)
    options = options(arguments)
    first = %i[kind task workflow].filter_map { |key| options.delete(key) }
    first += [options.delete(:name)].compact
    first << options.delete(:payload) if options.key?(:payload)
    case name
    when "watch" then client.watch(*first, **options.except(:count)).first(options[:count])
    when "value" then client.wait(*first, **options).value
    when "submit_many" then client.submit_many(arguments["tasks"].map { |task| new_task(options(task)) })
    else client.public_send(name, *first, **options)
    end
  end

  def new_task(options)
    Onward::NewTask.new(options[:kind], options[:payload], **options.except(:kind, :payload))
  end
end

client = nil
$stdin.each_line do |line|
  message = JSON.parse(line)
  reply =
    begin
      if message.key?("client")
        client = Onward::Client.new(**message["client"].transform_keys(&:to_sym))
        { value: nil }
      else
        { value: Driver.plain(Driver.call(client, message["call"], message["args"])) }
      end
    rescue Onward::Error, ArgumentError => e
      { raised: Driver.raised(e) }
    end
  puts JSON.generate(reply)
  $stdout.flush
end
