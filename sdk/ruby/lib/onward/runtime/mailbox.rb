# frozen_string_literal: true

module Onward
  module Runtime
    # The events for the thread that controls a run. A signal's trap may post too: it takes no lock,
    # and wakes that thread through a pipe.
    class Mailbox
      def initialize
        @reader, @writer = IO.pipe
        @events = Thread::Queue.new
        @signals = []
      end

      # Adds an event: an Array of its name and its values.
      def post(*event)
        @events << event
        wake
      end

      # Adds the event `signal`. It may be called in a trap.
      def post_signal(name)
        @signals << name
        wake
      end

      # Returns the next event, or nil after `seconds` without one.
      def take(seconds)
        return @events.pop unless @events.empty?

        @reader.read_nonblock(4_096, exception: false) if @signals.empty? && @reader.wait_readable(seconds)
        return [:signal, @signals.shift] unless @signals.empty?

        @events.empty? ? nil : @events.pop
      end

      def close
        [@reader, @writer].each { |io| io.close unless io.closed? }
      end

      private

      def wake
        # A full pipe wakes the reader too, and loses nothing: the events are elsewhere.
        @writer.write_nonblock(".", exception: false)
      rescue IOError, SystemCallError
        nil # the run has ended
      end
    end
  end
end
