# frozen_string_literal: true

require "json"
require_relative "../context"
require_relative "attempts"
require_relative "drain"
require_relative "link"
require_relative "mailbox"
require_relative "scheduler"
require_relative "signals"

module Onward
  module Runtime
    # One run of a worker, from its first connection to its last.
    class Run
      FEATURES = %w[ask headers submit].freeze

      # The part of the gateway's time limit of a drain after which running handlers are asked to stop.
      DRAIN_FRACTION = 0.8

      attr_reader :state, :logger

      # `settings` are those of the worker; `entries` are its kinds with their handlers.
      def initialize(address, entries, settings)
        @address = address
        @entries = entries
        @settings = settings
        @state = settings.state
        @logger = settings.logger
        @mailbox = Mailbox.new
        @outbox = Outbox.new(settings.slots + settings.prefetch) { @mailbox.post(:idle) }
        @attempts = Attempts.new(@outbox, @logger)
        @scheduler = Scheduler.new(settings.slots) { |context| @attempts.run(context) }
        @link = Link.new(address, @outbox, self, @logger)
        @drain = Drain.new(@outbox, @scheduler, @logger) { leave }
        @timers = []
        @stopping = @closed = false
      end

      # Runs until the last connection has ended. Returns the error that ended it, or nil.
      def serve
        ForkGuard.add(self)
        @signals = Signals.new(@mailbox)
        @link.start
        step(next_time) until @closed
        wait_for_handlers unless @abandoned
        @error || @abandoned
      ensure
        @signals&.restore
        ForkGuard.remove(self)
        @mailbox.close
      end

      # Drains and ends the run. A second call ends it at once. Any thread may call it.
      def stop = @mailbox.post(:stop)

      # Closes what a forked process has of this run.
      def forget_after_fork
        @signals&.restore
        @mailbox.close
        @link.forget_after_fork
      end

      # Returns the first message of a connection, which resumes the session if there is one.
      def hello(session)
        header = {
          t: "hello", protocol: [1], sdk: "onward-ruby", version: VERSION, language: "ruby #{RUBY_VERSION}",
          name: @settings.name, kinds: @entries.transform_values(&:header), slots: @settings.slots, features: FEATURES
        }
        header[:key] = @settings.key if @settings.key
        header[:resume] = { session: session, tasks: @outbox.resumable } if session
        # Tasks with long ids may not all fit. Those left out run again elsewhere.
        if session && JSON.generate(header).bytesize > Protocol::HEADER_BYTES
          header[:resume][:tasks].slice!(Outbox::HELD / 2..)
        end
        header
      end

      # Takes over the bounds and features that the gateway states.
      def welcomed(welcome)
        @attempts.max_payload = welcome.max_payload
        @attempts.features = welcome.features
        name = welcome.gateway.empty? ? "a gateway" : welcome.gateway
        @logger.info("onward: connected to #{name} at #{@address}, session #{welcome.session}")
      end

      # Starts tasks, or gives them back if the worker has no handler for them.
      def tasks(list)
        contexts = list.map { |task| Context.new(task, self, @entries[task.kind]) }
        ready = @outbox.receive(contexts).select { |context| startable?(context) }
        @scheduler.add(ready) unless ready.empty?
      end

      # Asks an attempt to stop.
      def stop_attempt(stop)
        context = @outbox.held_task(stop.task)
        return if context.nil? || context.task.fence != stop.fence

        context.request_stop(stop.why)
        if @scheduler.discard?(context)
          @outbox.end(context, Ends.stopped(context.task, stop.why, Cancelled.new(stop.why)))
        else
          @mailbox.post(:grace, context, monotonic + stop.grace)
        end
      end

      # Stops the attempts of these tasks, whose leases have passed on. Their results are dropped.
      def lost(tasks)
        tasks.each do |task|
          context = @outbox.held_task(task)
          stop_attempt(Protocol::Stop.new(task, context.task.fence, "lost", 0.0)) if context
        end
      end

      # Stops every attempt, because the leases have passed on.
      def lost_all = lost(@outbox.held.map(&:task_id))

      # Drains within the gateway's time limit.
      def drained(drain) = @mailbox.post(:drain, drain)

      # Ends the run.
      def closed(error) = @mailbox.post(:closed, error)

      # The bound of one payload, in bytes.
      def max_payload = @attempts.max_payload

      # The features that the gateway has too.
      def features = @attempts.features

      # Sends the context's heartbeat and progress soon.
      def touch(context) = @outbox.touch(context)

      # Keeps a checkpoint; the promise ends when it is durable.
      def save_checkpoint(context, payload) = @outbox.save_checkpoint(context, payload)

      # Sends a request; the promise ends with its reply.
      def request(header, payloads, resend:) = @outbox.request(header, payloads, resend)

      # Raises ForkError in a process that was forked from the worker's.
      def check_process = @attempts.check_process

      private

      def startable?(context)
        if context.entry.nil?
          @logger.error("onward: no handler for the kind `#{context.kind}`: task #{context.task_id} is given back")
          @outbox.end(context, Ends.release(context.task, "unknown_kind"))
          false
        elsif @drain.active?
          @outbox.end(context, Ends.release(context.task, "draining"))
          false
        else
          true
        end
      end

      # Waits for an event or a time, and acts on it.
      def step(limit)
        name, *values = @mailbox.take(limit && [limit - monotonic, 0].max)
        case name
        when :signal then signalled(values.first)
        when :stop then begin_stop
        when :drain then drain_for_gateway(values.first)
        when :grace then add_timer(values)
        when :closed
          @closed = true
          @error = values.first
        end
        @drain.tick unless @closed
        report_stubborn
      end

      def add_timer(timer)
        # An attempt that has ended needs no report, so that the list keeps the bound of held tasks.
        if @timers.size > Outbox::HELD
          @timers.select! do |context, _|
            @outbox.held_task(context.task_id).equal?(context)
          end
        end
        @timers << timer
      end

      def next_time = [@drain.deadline, *@timers.map(&:last)].compact.min

      def signalled(name)
        @logger.info("onward: SIG#{name}: the worker drains")
        begin_stop
      end

      def begin_stop
        return end_at_once if @stopping

        @stopping = true
        @drain.begin(@settings.grace)
      end

      def end_at_once
        count = @outbox.held.size
        @abandoned = Error.new("stopped at once; the tasks of #{count} handlers run again elsewhere") if count.positive?
        @link.close
      end

      def drain_for_gateway(drain)
        @logger.info("onward: the gateway drains: #{drain.why}")
        @drain.begin([@settings.grace, drain.within * DRAIN_FRACTION].min)
      end

      def leave
        last = @stopping || !@address.reconnects?
        @outbox.drain(false) unless last
        return @link.say_bye(last: last) if @outbox.held.empty?

        # `bye` states that every task has ended. Without it the gateway runs the others again.
        return @link.interrupt unless last

        @abandoned = Error.new("#{@outbox.held.size} handlers did not stop; their tasks run again elsewhere")
        @link.close
      end

      # Reports handlers that run on after the grace of a stop. Ruby cannot end them safely.
      def report_stubborn
        now = monotonic
        due, @timers = @timers.partition { |_, time| time <= now }
        due.each do |context, _|
          next unless @outbox.held_task(context.task_id).equal?(context)

          @logger.error("onward: task #{context.task_id} of kind `#{context.kind}` still runs after its grace; " \
                        "have the handler read `ctx.cancelled?`")
        end
      end

      # Waits for handlers that still run after the connection has ended, at most 5 s.
      def wait_for_handlers
        @outbox.forget_kept # no gateway will acknowledge them on this run's connections
        @outbox.drain(true)
        limit = monotonic + Drain::ABORT_SECONDS
        step(limit) until @outbox.idle? || monotonic >= limit
      end

      def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
