# frozen_string_literal: true

require "socket"
require_relative "helper"

# The client, beyond the cases of sdk/conformance/clients.
class ClientTest < Minitest::Test
  EVENT = %({"cursor":"1.0.0","at":"t","task":"7","kind":"k","queue":"q","change":"started"})
  STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: #{EVENT}\n\n".freeze

  # Serves one response to each connection, and returns the client of the server.
  def client(response)
    server = TCPServer.new("127.0.0.1", 0)
    @served = 0
    thread = Thread.new do
      while (connection = server.accept)
        @served += 1
        connection.readpartial(4096)
        connection.write(response)
        connection.close
      end
    rescue IOError
      nil
    end
    (@servers ||= []) << [server, thread]
    Onward::Client.new("http://127.0.0.1:#{server.addr[1]}", "key", retry_for: 5)
  end

  def teardown
    @servers&.each do |server, thread|
      server.close
      thread.join
    end
  end

  # Errors of the caller are not cuts of the stream, which would deliver the event again.
  [IOError, Errno::ENOSPC, Onward::Unavailable].each do |error|
    define_method("test_#{error.name.gsub('::', '_')}_of_the_block_ends_a_watch") do
      seen = []
      assert_raises(error) do
        client(STREAM).watch.each { |event| seen.push(event) && raise(error) }
      end
      assert_equal [1, 1], [seen.size, @served]
    end
  end

  def test_a_watch_is_left_by_break
    assert_equal "started", client(STREAM).watch.first.change
  end

  def test_an_address_that_is_none_is_refused
    error = assert_raises(ArgumentError) { Onward::Client.new("127.0.0.1:7070", "key") }
    assert_match(%r{http://HOST:PORT}, error.message)
  end

  def test_headers_of_a_task_are_refused
    task = Onward::NewTask.new("k", headers: { a: "b" })
    assert_raises(ArgumentError) { client("").submit(task) }
  end
end
