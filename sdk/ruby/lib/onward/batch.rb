# frozen_string_literal: true

require_relative "errors"
require_relative "payload"

module Onward
  # The positions of a task's cursor that are not done yet.
  #
  # The payload is `{"from": 0, "to": 1000}`, or an object with such a `cursor`; `to` is excluded.
  # `each` calls its block with every position. After every `every` positions, the position and
  # `partial` become the task's checkpoint, so that the next attempt continues there. `each` raises
  # Cancelled when the attempt should stop.
  class Batch
    # The payload of the task.
    attr_reader :payload

    # The first position that is not done.
    attr_reader :position

    # The result so far: any JSON value. It is the result of a handler that returns nil or the batch.
    attr_accessor :partial

    def initialize(context, every)
      @context = context
      @every = every
      @payload = read
      @from, @to = bounds
      @position = @from
      saved = context.last_checkpoint
      return unless saved.is_a?(Hash) && saved["position"].is_a?(Integer)

      @position = saved["position"].clamp(@from, @to)
      @partial = saved["partial"]
    end

    # Returns the number of positions that are not done.
    def size = @to - @position

    # Calls the block with each position.
    def each
      return to_enum(:each) { size } unless block_given?

      while @position < @to
        @context.check!
        yield @position
        advance
      end
      self
    end

    private

    # Marks a position as done, and keeps a checkpoint where one is due.
    def advance
      @position += 1
      done = @position - @from
      @context.progress(done.fdiv(@to - @from))
      return if done % @every != 0 || @position == @to

      @context.checkpoint({ position: @position, partial: @partial })
    end

    def read
      payload = Payload.decode(@context.task.payload)
      return payload if payload.is_a?(Hash)

      raise Fail, "the payload of a batch is #{payload.inspect[0, 80]}; it must be an object with `from` and `to`"
    rescue PayloadError => e
      raise Fail, e.message
    end

    def bounds
      cursor = @payload.fetch("cursor", @payload)
      from, to = cursor.is_a?(Hash) ? cursor.values_at("from", "to") : nil
      return [from, to] if from.is_a?(Integer) && to.is_a?(Integer) && to >= from

      raise Fail, "the cursor of task #{@context.task_id} is #{cursor.inspect[0, 80]}; it must be " \
                  '{"from": integer, "to": integer} with `to` not before `from`'
    end
  end
end
