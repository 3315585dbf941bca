# frozen_string_literal: true

require_relative "helper"

# The scheduler: slots, limits of kinds, and order.
class SchedulerTest < Minitest::Test
  include Helpers

  Task = Struct.new(:entry, :number)

  def setup
    @ended = Thread::Queue.new
    @gate = Thread::Queue.new
  end

  def entry(limit: nil, &block)
    Onward::Entry.new("it", block || proc {}, read: ->(task) { task }, limit: limit)
  end

  def scheduler(slots)
    Onward::Runtime::Scheduler.new(slots) do |task|
      task.entry.call(task)
    ensure
      @ended << task.number
    end
  end

  def tasks(count, entry) = (0...count).map { |number| Task.new(entry, number) }

  def test_short_handlers_end_in_their_order
    scheduler = scheduler(8)
    scheduler.add(tasks(5_000, entry))
    assert_equal (0...5_000).to_a, Array.new(5_000) { @ended.pop }
  end

  def test_handlers_that_wait_run_at_once_up_to_the_slots
    running = Thread::Queue.new
    waits = entry { running << 1 && @gate.pop }
    scheduler = scheduler(3)
    scheduler.add(tasks(5, waits))
    3.times { running.pop }
    assert_equal 2, scheduler.release.size
    assert_empty running
    3.times { @gate << 1 }
    assert_equal [0, 1, 2], Array.new(3) { @ended.pop }.sort
  end

  def test_a_kind_at_its_limit_does_not_hold_back_others
    scheduler = scheduler(3)
    waits = entry(limit: 1) { @gate.pop }
    limited = tasks(2, waits)
    scheduler.add(limited + [Task.new(entry, 9)])
    assert_equal 9, @ended.pop
    refute scheduler.discard?(limited[0])
    assert scheduler.discard?(limited[1])
    @gate << 1
    assert_equal 0, @ended.pop
  end

  def test_a_handler_that_ends_its_thread_costs_no_slot
    scheduler = scheduler(1)
    scheduler.add([Task.new(entry { Thread.exit }, 0), Task.new(entry, 1)])
    assert_equal [0, 1], Array.new(2) { @ended.pop }
  end
end
