# frozen_string_literal: true

require_relative "helper"

# The codec agrees with the vectors that every implementation reads.
class VectorsTest < Minitest::Test
  Protocol = Onward::Protocol

  def decoder(carrier = "child")
    Protocol::Decoder.new(commands: carrier != "child", max_payload: Protocol::PAYLOAD_BYTES)
  end

  def bytes(hex) = [hex].pack("H*")

  def expected(vector)
    vector["messages"].map { |one| [one["header"], one["payloads"].map { |hex| bytes(hex) }] }
  end

  def code(error) = assert_raises(Onward::ProtocolError, &error).code

  VECTORS["valid"].each do |vector|
    define_method("test_decodes: #{vector['name']}") do
      assert_equal expected(vector), decoder.feed(bytes(vector["hex"])).map(&:to_a)
    end

    define_method("test_decodes_single_bytes: #{vector['name']}") do
      reader = decoder
      messages = bytes(vector["hex"]).each_char.flat_map { |byte| reader.feed(byte) }
      assert_equal expected(vector), messages.map(&:to_a)
    end

    define_method("test_encodes_what_it_decodes: #{vector['name']}") do
      expected(vector).each do |header, payloads|
        again = decoder.feed(Protocol::Frames.encode(header.except("payloads"), payloads)).map(&:to_a)
        assert_equal header.except("payloads"), again[0][0].except("payloads")
        assert_equal payloads, again[0][1]
      end
    end
  end

  VECTORS["invalid"].each do |vector|
    define_method("test_rejects: #{vector['name']}") do
      reader = decoder(vector.fetch("carrier", "child"))
      if vector["at_end"]
        assert_empty reader.feed(bytes(vector["hex"]))
        assert_predicate reader, :inside_message?
      else
        assert_equal vector["error"], code(-> { reader.feed(bytes(vector["hex"])) })
      end
    end
  end

  VECTORS["headers"].select { |vector| vector["from"] == "gateway" }.each do |vector|
    define_method("test_header: #{vector['name']}") do
      parse = -> { Protocol::Messages.parse(Protocol::Message.new(vector["header"], [])) }
      vector["error"] ? assert_equal(vector["error"], code(parse)) : assert(parse.call)
    end
  end

  def test_the_greeting_is_that_of_the_vectors
    assert_equal VECTORS["greeting"]["both"], Protocol::Connection::GREETING.unpack1("H*")
    assert_equal VECTORS["greeting"]["worker_ready"], Protocol::Connection::READY.unpack1("H*")
  end

  def test_a_ping_is_answered_as_the_vectors_state
    ping = decoder("ipc").feed(bytes(VECTORS["greeting"]["ping"]))[0].payloads[0]
    assert_equal VECTORS["greeting"]["pong"], Protocol::Connection.pong(ping).unpack1("H*")
  end

  def test_an_error_command_ends_the_connection
    error = assert_raises(Onward::ProtocolError) { Protocol::Connection.pong("\x05ERROR\x02no".b) }
    assert_includes error.message, "no"
  end

  def test_no_payload_is_allowed_before_welcome
    reader = Protocol::Decoder.new(commands: false)
    data = Protocol::Frames.encode({ t: "tasks" }, ["x".b])
    assert_equal "payload_too_large", code(-> { reader.feed(data) })
  end

  def test_random_bytes_end_in_messages_or_a_protocol_error
    random = Random.new(7)
    errors = 500.times.count do
      decoder("ipc").feed(random.bytes(random.rand(1..60)))
      false
    rescue Onward::ProtocolError
      true
    end
    assert_operator errors, :>, 100
  end

  def test_a_header_over_its_bound_is_not_encoded
    error = assert_raises(Onward::ProtocolError) { Protocol::Frames.encode({ t: "x", text: "y" * 65_536 }) }
    assert_equal "header_too_large", error.code
  end
end
