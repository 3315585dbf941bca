# frozen_string_literal: true

require_relative "helper"

# The outbox: credit, beats, and ends that are kept.
class OutboxTest < Minitest::Test
  include Helpers

  Protocol = Onward::Protocol

  def setup
    @outbox = Onward::Runtime::Outbox.new(4) { nil }
    connect
  end

  def connect(lease: 20.0, heartbeat: 10.0)
    @outbox.open(Protocol::Welcome.new("s", lease, heartbeat, 1_000_000, [], ""))
  end

  # Returns the next messages that the outbox sends.
  def sent
    decoder = Protocol::Decoder.new(commands: false, max_payload: 1 << 20)
    decoder.feed(@outbox.take.encode).map { |message| message.header.merge("bytes" => message.payloads) }
  end

  def receive(count, fence: "1")
    tasks = (1..count).map { |id| Protocol::TaskMessage.new(id.to_s, fence, "it", 1, "") }
    @outbox.receive(tasks.map { |task| Onward::Context.new(task, nil) })
  end

  def finish(context) = @outbox.end(context, Onward::Runtime::Ends.completed(context.task, "x".b, 1 << 20))

  def acknowledge(task, result) = @outbox.acknowledge([Protocol::Ack.new(task, "1", result, "no room")])

  def types(messages) = messages.map { |message| message["t"] }

  def test_credit_rises_with_each_end
    assert_equal [["grant", 4]], sent.map { |message| message.values_at("t", "credit") }
    first, = receive(3)
    finish(first)
    assert_equal [nil, 5], sent.map { |message| message["credit"] }
  end

  def test_an_end_is_sent_again_until_its_acknowledgement
    finish(receive(1).first)
    assert_equal ["1"], sent.flat_map { |message| message["ends"] || [] }.map { |one| one["task"] }
    connect
    assert_equal([["x".b], []], sent.map { |message| message["bytes"] })
    acknowledge("1", "ok")
    connect
    assert_equal ["grant"], types(sent)
    assert_predicate @outbox, :idle?
  end

  def test_a_refused_end_becomes_a_failure_and_then_a_release
    finish(receive(1).first)
    sent
    acknowledge("1", "refused")
    ended = sent.first["ends"].first
    assert_equal ["fail", false], ended.values_at("outcome", "retry")
    assert_includes ended["message"], "no room"
    acknowledge("1", "refused")
    assert_equal "release", sent.first["ends"].first["outcome"]
  end

  def test_an_attempt_that_is_sent_twice_is_taken_once
    assert_equal 1, receive(1).size
    assert_empty receive(1)
    assert_equal 1, receive(1, fence: "2").size
  end

  def test_ends_that_do_not_fit_into_a_header_travel_in_several_messages
    outbox = @outbox
    contexts = receive(100)
    contexts.each do |context|
      outbox.end(context, Onward::Runtime::Ends.failed(context.task, RuntimeError.new("x" * 8_000)))
    end
    ends = sent.select { |message| message["t"] == "end" }
    assert_operator ends.size, :>, 1
    assert_equal((1..100).map(&:to_s), ends.flat_map { |message| message["ends"].map { |one| one["task"] } })
  end

  def test_a_beat_carries_progress_and_checkpoints
    context, = receive(1)
    sent
    promise = @outbox.save_checkpoint(context, "7".b)
    @outbox.touch(context)
    beat, = sent
    assert_equal ["beat", [{ "task" => "1", "fence" => "1", "checkpoint" => 0 }]], beat.values_at("t", "tasks")
    @outbox.alive(Protocol::Alive.new(beat["n"], [], {}))
    assert_nil promise.value
  end

  def test_a_checkpoint_is_sent_again_after_a_reconnect
    context, = receive(1)
    promise = @outbox.save_checkpoint(context, "7".b)
    sent
    connect
    beat = sent.find { |message| message["t"] == "beat" }
    @outbox.alive(Protocol::Alive.new(beat["n"], [], { "1" => "too large" }))
    assert_includes assert_raises(Onward::Refused) { promise.value }.message, "too large"
  end

  def test_a_lost_connection_fails_requests_without_keys
    lost = @outbox.request({ t: "ask" }, [], false)
    kept = @outbox.request({ t: "ask" }, [], true)
    sent
    @outbox.close
    assert_raises(Onward::Unavailable) { lost.value }
    connect
    assert_includes types(sent), "ask"
    @outbox.reply(Protocol::Reply.new(2, { "t" => "reply" }, []))
    assert_equal 2, kept.value.request
  end

  def test_nothing_is_sent_after_the_lease
    connect(lease: 0.0)
    assert_nil @outbox.take
  end

  def test_a_draining_worker_grants_nothing
    sent
    @outbox.drain(true)
    assert_equal ["drain"], types(sent)
    receive(1)
    @outbox.send_raw(Protocol::Frames.encode({ t: "bye" }))
    assert_equal ["bye"], types(sent)
  end

  def test_a_request_after_the_last_connection_fails_at_once
    @outbox.abandon
    promises = [@outbox.request({ t: "ask" }, [], true), @outbox.save_checkpoint(receive(1).first, "7".b)]
    promises.each { |promise| assert_raises(Onward::Unavailable) { promise.value } }
  end
end
