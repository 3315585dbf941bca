# frozen_string_literal: true

require_relative "promise"

module Onward
  module Runtime
    # A checkpoint that is not known to be durable.
    Checkpoint = Struct.new(:context, :payload, :promise)

    # A beat to send: its number, the contexts with a heartbeat, and the checkpoints.
    Beat = Struct.new(:number, :touched, :checkpoints)

    # The beats of a connection: when one is due, and which are not answered. The outbox guards it by
    # its lock.
    class Beats
      # The largest number of tasks in one beat, so that its header stays within its bound.
      ENTRIES = 512

      # The size of checkpoints at which no further one is gathered into a beat, in bytes.
      GATHERED_BYTES = 1_048_576

      # The shortest time between two beats that carry progress, in seconds.
      PROGRESS_SECONDS = 0.1

      # The part of the gateway's heartbeat interval after which a beat is sent.
      FRACTION = 0.75

      def initialize
        @touched = {}
        @checkpoints = []
        @sent = {}
        @number = 0
        @next_beat = @next_progress = @interval = 0.0
      end

      # Begins a connection. Checkpoints of which the answer was lost are sent again.
      def open(now, heartbeat)
        @checkpoints = unanswered + @checkpoints
        @sent.clear
        @interval = heartbeat * FRACTION
        @next_beat = now + @interval
      end

      # Has the next beat carry the context. Returns whether that is new.
      def touch?(context)
        return false if @touched.key?(context.task_id)

        @touched[context.task_id] = context
        true
      end

      def forget(context) = @touched.delete(context.task_id)

      def add(checkpoint) = @checkpoints << checkpoint

      # Returns when the next beat is due.
      def next_time = @touched.empty? ? @next_beat : [@next_beat, @next_progress].min

      # Returns the beat that is due, or nil. A checkpoint is due at once.
      def take(now)
        return if @checkpoints.empty? && now < next_time

        checkpoints = @checkpoints.shift(fitting)
        touched = @touched.keys.first(ENTRIES - checkpoints.size).map { |task| @touched.delete(task) }
        @number += 1
        @sent[@number] = [now, checkpoints]
        @next_beat = now + @interval
        @next_progress = now + PROGRESS_SECONDS
        Beat.new(@number, touched, checkpoints)
      end

      # Returns the time at which a beat was sent, and its checkpoints. It is answered now.
      def answered(number) = @sent.delete(number) || [nil, []]

      # Returns every checkpoint that is not durable, and forgets them.
      def abandon
        all = unanswered + @checkpoints
        @sent.clear
        @checkpoints = []
        all
      end

      private

      def unanswered = @sent.each_value.flat_map(&:last)

      def fitting
        size = 0
        count = @checkpoints.first(ENTRIES).take_while { |one| (size += one.payload.bytesize) <= GATHERED_BYTES }.size
        [count, [1, @checkpoints.size].min].max
      end
    end
  end
end
