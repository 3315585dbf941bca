# frozen_string_literal: true

module Onward
  module Runtime
    # Detects that this process was forked from one in which a worker runs.
    #
    # A forked process has none of the worker's threads, but a copy of its connection and its traps.
    # The copy is closed at once: otherwise the gateway would not notice the death of the worker.
    module ForkGuard
      REMEDY = "this process was forked from a running worker, whose threads and connection it does not have; " \
               "start programs with `spawn` or `system`, or fork before `run`"

      @runs = []

      class << self
        def add(run) = @runs |= [run]

        def remove(run) = @runs -= [run]

        # Closes what the runs of the parent left in this process.
        def forked
          runs = @runs
          @runs = []
          runs.each(&:forget_after_fork)
        end
      end

      # Hooks the fork of every method that forks, as Process._fork is made for.
      module Hook
        def _fork
          pid = super
          ForkGuard.forked if pid.zero?
          pid
        end
      end

      Process.singleton_class.prepend(Hook)
    end
  end
end
