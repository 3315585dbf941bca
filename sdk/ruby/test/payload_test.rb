# frozen_string_literal: true

require_relative "helper"

# Payloads, inputs and results.
class PayloadTest < Minitest::Test
  include Helpers

  Point = Struct.new(:x, :y, keyword_init: true)

  def encode(value) = Onward::Payload.encode(value)

  def test_values_become_json
    { nil => "null", { a: [1, 2.5, true] } => '{"a":[1,2.5,true]}', :sym => '"sym"', "ü" => '"ü"',
      Point.new(x: 1) => '{"x":1,"y":null}', Time.utc(2026, 1, 2, 3, 4, 5.25r) => '"2026-01-02T03:04:05.250000Z"',
      Date.new(2026, 1, 2) => '"2026-01-02"', Set[1] => "[1]" }.each do |value, json|
      assert_equal json.b, encode(value)
    end
  end

  def test_bytes_stay_as_they_are
    assert_equal "\xff\x00".b, encode("\xff\x00".b)
  end

  def test_a_value_without_a_json_form_is_refused
    [Object.new, Float::NAN, Float::INFINITY, "\xff", ["\xff"], $stdout, 1..2].each do |value|
      assert_raises(Onward::PayloadError, value.inspect) { encode(value) }
    end
  end

  def test_a_cycle_is_refused
    list = []
    list << list
    assert_includes assert_raises(Onward::PayloadError) { encode(list) }.message, "deeper than 100"
  end

  def test_text_of_another_encoding_is_converted
    assert_equal '"ü"'.b, encode("ü".encode("ISO-8859-1"))
  end

  def test_a_result_without_a_json_form_fails_without_a_retry
    outcome = run_handler { Object.new }
    assert_equal ["fail", false], outcome.fields.values_at(:outcome, :retry)
    assert_includes outcome.fields[:message], "Object"
  end

  def test_inputs
    { json: { "x" => 1, "y" => 2 }, symbols: { x: 1, y: 2 }, bytes: '{"x":1,"y":2}'.b,
      Point => Point.new(x: 1, y: 2), ->(value) { value.fetch("x") + 1 } => 2 }.each do |input, expected|
      seen = nil
      run_handler({ x: 1, y: 2 }, options: { input: input }) { |task| seen = task }
      expected.nil? ? assert_nil(seen) : assert_equal(expected, seen)
    end
  end

  def test_an_input_ignores_unknown_fields
    assert_equal 1, run_handler({ x: 1, y: 2, z: 3 }, options: { input: Point }) { |point, _| point.x }.value
  end

  def test_a_payload_without_a_field_is_refused_by_its_name
    outcome = run_handler({ x: 1 }, options: { input: Point }) { flunk("the handler ran") }
    assert_equal ["fail", false], outcome.fields.values_at(:outcome, :retry)
    assert_includes outcome.fields[:message], "no field `y` of PayloadTest::Point"
  end

  def test_a_class_with_defaults_takes_a_payload_without_them
    form = Class.new(Struct.new(:x, :y, keyword_init: true)) { def initialize(x:, y: 2) = super }
    outcome = run_handler({ x: 1 }, options: { input: form }) { |point, _| [point.x, point.y] }
    assert_equal [1, 2], outcome.value
  end

  def test_a_payload_that_the_input_rejects_fails_without_a_retry
    pattern = lambda do |value|
      value => { x: Integer }
      value
    end
    inputs = { ->(value) { Integer(value) } => "text", ->(value) { value.fetch("y") } => {}, Point => 7, pattern => 7 }
    inputs.each do |input, payload|
      outcome = run_handler(payload, options: { input: input }) { flunk("the handler ran") }
      assert_equal ["fail", false], outcome.fields.values_at(:outcome, :retry), input.inspect
    end
  end

  def test_a_payload_that_is_no_json_fails_without_a_retry
    ["{", "NaN", "\xff", "1 2"].each do |payload|
      outcome = run_handler(payload.b) { flunk("the handler ran") }
      assert_equal ["fail", false], outcome.fields.values_at(:outcome, :retry), payload
    end
  end

  def test_an_error_of_the_handler_is_not_taken_for_one_of_its_input
    outcome = run_handler { raise ArgumentError, "mine" }
    refute outcome.fields.key?(:retry)
  end

  def test_an_unknown_input_is_refused
    error = assert_raises(ArgumentError) { worker.handler("it", input: :xml) { nil } }
    assert_includes error.message, ":symbols"
  end

  def test_a_result_over_the_bound_fails_and_names_both_sizes
    outcome = run_handler(max_payload: 10) { "x" * 11 }
    assert_equal ["PayloadTooLarge", false], outcome.fields.values_at(:class, :retry)
    assert_match(/13 bytes, more than 10/, outcome.fields[:message])
  end
end
