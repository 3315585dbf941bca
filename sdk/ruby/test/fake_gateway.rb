# frozen_string_literal: true

require "tmpdir"
require_relative "helper"

# A gateway in this process, which a test drives message by message.
class FakeGateway
  Protocol = Onward::Protocol
  WELCOME = { t: "welcome", protocol: 1, session: "s", lease_ms: 5_000, heartbeat_ms: 1_000,
              features: %w[ask submit] }.freeze

  # The address of the gateway, and the first credit of the last connection.
  attr_reader :address, :credit

  def initialize
    @folder = Dir.mktmpdir("onward-ruby-")
    path = File.join(@folder, "sock")
    @server = UNIXServer.new(path)
    @address = "ipc://#{path}"
  end

  # Accepts a connection, shakes hands, waits for credit, and returns `hello`.
  def accept(welcome = {})
    hello = greet
    send(**WELCOME, **welcome)
    @credit = read("grant")["credit"] if welcome[:t].nil?
    hello
  end

  # Accepts a connection, shakes hands, and returns `hello`.
  def greet
    raise("no connection") unless @server.wait_readable(10)

    @socket = @server.accept
    @decoder = Protocol::Decoder.new(commands: true, max_payload: 1 << 20)
    @messages = []
    @socket.write(Protocol::Connection::GREETING, Protocol::Frames.frame("\x05READY".b, Protocol::COMMAND))
    @socket.read(64)
    read("hello")
  end

  def send(payloads: [], **header) = @socket.write(Protocol::Frames.encode(header, payloads))

  # Sends one task.
  def task(kind, id: "1", payload: "null")
    send(t: "tasks", tasks: [{ task: id, fence: "1", kind: kind, attempt: 1, payload: 0 }], payloads: [payload.b])
  end

  # Returns the next message of a type, and answers beats on the way. Others stay for later reads.
  def read(type, seconds = 10)
    until (at = @messages.index { |message| message.header["t"] == type })
      @messages.concat(receive(seconds))
    end
    message = @messages.delete_at(at)
    message.header.merge("bytes" => message.payloads)
  end

  # Returns the next end, acknowledged.
  def ended
    message = read("end")
    one, = message["ends"]
    send(t: "ack", ends: [{ task: one["task"], fence: one["fence"], result: "ok" }])
    one["payload"] ? one.merge("result" => message["bytes"][one["payload"]]) : one
  end

  def close_connection = @socket.close

  def close
    [@socket, @server].compact.each { |io| io.close unless io.closed? }
    FileUtils.remove_entry(@folder)
  end

  private

  def receive(seconds)
    raise "nothing came" unless @socket.wait_readable(seconds)

    messages = @decoder.feed(@socket.readpartial(1 << 18))
    messages.each { |message| send(t: "alive", n: message.header["n"]) if message.header["t"] == "beat" }
  end
end
