# frozen_string_literal: true

module Onward
  module Runtime
    # Starts received tasks in their order on threads, one for each slot at most.
    #
    # A thread that takes a task while others wait wakes the next thread, and so on. So one thread
    # runs many short handlers without a switch, and handlers that block get a thread each.
    class Scheduler
      # The time for which a handler that computes keeps the next task from another thread, in
      # seconds. So the ends of short handlers keep the order of their tasks.
      SHORT_SECONDS = 0.005

      # The time after which a thread that holds back looks again, in seconds.
      STANDBY_SECONDS = 0.002

      # The block runs an attempt and ends it; it raises nothing.
      def initialize(slots, &run)
        @slots = slots
        @run = run
        @lock = Mutex.new
        @wakeup = ConditionVariable.new
        @ready = [] # waits for a slot
        @limited = {} # entries of which tasks wait for their kind's limit
        @started = [] # has a slot, and waits for a thread
        @running = @threads = @idle = 0
        @waking = false
      end

      # Takes received tasks. Those beyond the slots and the limits of their kinds wait.
      def add(contexts)
        @lock.synchronize do
          @ready.concat(contexts)
          start
          wake_next
        end
      end

      # Returns the tasks that have not started, and forgets them.
      def release
        @lock.synchronize do
          waiting = @ready + @limited.keys.flat_map { |entry| entry.parked.slice!(0..) }
          @ready = []
          @limited.clear
          waiting
        end
      end

      # Forgets a task that has not started. Returns whether there was one.
      def discard?(context)
        @lock.synchronize do
          !(@ready.delete(context) || context.entry.parked.delete(context)).nil?
        end
      end

      private

      # Gives free slots to the tasks that wait.
      def start
        while @running < @slots && (context = @ready.shift)
          entry = context.entry
          if entry.limit && entry.running >= entry.limit
            entry.parked << context
            @limited[entry] = true
          else
            entry.running += 1
            @running += 1
            @started << context
          end
        end
      end

      # Frees the slot of a task.
      def finished(context)
        entry = context.entry
        entry.running -= 1
        @running -= 1
        @ready.unshift(entry.parked.shift) unless entry.parked.empty?
        start
      end

      def wake_next
        return if @waking || @started.empty?

        if @idle.positive?
          @waking = true
          @wakeup.signal
        elsif @threads < @slots
          @waking = true
          @threads += 1
          Thread.new { work }.name = "onward-handler"
        end
      end

      def work
        context = nil
        woken = true
        loop do
          context = take(context, woken)
          woken = false
          @run.call(context)
        end
      ensure
        # A handler that ends its thread (`Thread.exit`) must not cost a slot.
        @lock.synchronize do
          @threads -= 1
          finished(context) if context
          wake_next
        end
      end

      # Frees the slot of the thread's last task, and waits for its next. A thread that was woken
      # wakes the next one.
      def take(last, woken)
        @lock.synchronize do
          finished(last) if last
          @waking = false if wait_for_task(woken)
          @taker = Thread.current
          @taken = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          context = @started.shift
          wake_next
          context
        end
      end

      # Waits until a task has started. Returns whether this thread was woken for it.
      def wait_for_task(woken)
        while @started.empty? || hold_back?
          next @lock.sleep(STANDBY_SECONDS) unless @started.empty?

          @waking = false if woken
          @idle += 1
          @wakeup.wait(@lock)
          @idle -= 1
          woken = true
        end
        woken
      end

      # Returns whether another thread was interrupted within a short handler, after which it takes
      # the next task itself. A thread that waits (`sleep`) is not interrupted.
      def hold_back?
        return false if @taker.nil? || @taker.equal?(Thread.current) || @taker.status != "run"

        Process.clock_gettime(Process::CLOCK_MONOTONIC) - @taken < SHORT_SECONDS
      end
    end
  end
end
