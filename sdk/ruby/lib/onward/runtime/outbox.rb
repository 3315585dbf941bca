# frozen_string_literal: true

require_relative "beats"
require_relative "ends"
require_relative "parcel"
require_relative "request_list"

module Onward
  module Runtime
    # The messages that wait to be sent, and the ends that are kept until the gateway acknowledges
    # them. Handlers add to it, one writer takes from it.
    class Outbox
      # The number of ends that are gathered into one message.
      ENDS_OF_A_MESSAGE = 128

      # The size of payloads at which no further end is gathered into a message, in bytes.
      GATHERED_BYTES = 1_048_576

      # The largest number of tasks that run, wait for a slot, or wait for their acknowledgement.
      HELD = 1_024

      DRAIN = Protocol::Frames.encode({ t: "drain" }).freeze
      BYE = Protocol::Frames.encode({ t: "bye" }).freeze
      private_constant :DRAIN, :BYE

      # The time at which the lease passes, or infinity before the first welcome and after its loss.
      attr_reader :lease_end

      # `window` is the number of tasks that the worker wants to hold at once. The block is called
      # when a draining worker holds nothing more.
      def initialize(window, &on_idle)
        @window = [window, HELD].min
        @on_idle = on_idle
        @lock = Mutex.new
        @changed = ConditionVariable.new
        @held = {}
        @kept = {}
        @done = Thread::Queue.new
        @ends = []
        @raw = []
        @refused = {}
        @beats = Beats.new
        @requests = RequestList.new
        @received = @credit = 0
        @lease_end = Float::INFINITY
        @closed = true
        @draining = @waiting = @last_bye = @abandoned = false
      end

      # Begins a connection: credit starts again, and what was not acknowledged is sent again.
      def open(welcome)
        @lock.synchronize do
          now = monotonic
          @closed = false
          @received = @credit = 0
          @lease = welcome.lease
          @lease_end = now + welcome.lease
          @raw.clear
          @raw << DRAIN if @draining
          @raw << BYE if @last_bye
          absorb
          @ends = @kept.values
          @beats.open(now, welcome.heartbeat)
          @requests.open
        end
      end

      # Ends a connection. Requests that may not be sent twice fail.
      def close
        lost = @lock.synchronize do
          @closed = true
          @changed.broadcast
          @requests.lose
        end
        text = "the connection to the gateway was lost before the reply; give the task a key"
        lost.each { |request| request.promise.reject(Unavailable.new(text)) }
      end

      # Forgets the lease, so that its end is noticed once.
      def forget_lease = @lease_end = Float::INFINITY

      # Fails every request and checkpoint, because no connection will follow.
      def abandon
        @abandoned = true
        reject_all
      end

      # Forgets the ends without an acknowledgement, because no connection will follow.
      def forget_kept
        @lock.synchronize do
          absorb
          @kept.clear
        end
      end

      # Counts received tasks against the credit. Returns those that the worker did not hold yet.
      def receive(contexts)
        @lock.synchronize do
          @received += contexts.size
          contexts.select do |context|
            task = context.task
            known = @held[task.task]
            next false if known&.task&.fence == task.fence || @kept.key?(task.token)

            @held[task.task] = context
            true
          end
        end
      end

      # Ends an attempt. nil means that nothing is sent, because the lease has passed on.
      #
      # It takes no lock while the writer is busy, so that no other thread overtakes this one.
      def end(context, ended)
        @done << [context, ended]
        change { nil } if @waiting || @draining
      end

      # Has the next beat carry the context's heartbeat and progress.
      def touch(context)
        @lock.synchronize { wake if @beats.touch?(context) }
      end

      # Sends a checkpoint with the next beat, which is sent at once. Returns its promise.
      def save_checkpoint(context, payload)
        checkpoint = Checkpoint.new(context, payload, Promise.new)
        change { @beats.add(checkpoint) }
        reject_all if @abandoned
        checkpoint.promise
      end

      # Sends a request. Returns the promise of its reply.
      def request(header, payloads, resend)
        request = Request.new(header, payloads, resend, Promise.new)
        change { @requests.add(request) }
        reject_all if @abandoned
        request.promise
      end

      # Sends bytes before everything else.
      def send_raw(bytes) = change { @raw << bytes }

      # Stops granting credit, or begins again.
      def drain(draining)
        change do
          @raw << DRAIN if draining && !@draining
          @draining = draining
        end
      end

      # Sends `bye` on this connection. The last one is sent on a connection that begins now, too.
      def say_bye(last:)
        change do
          @last_bye = last
          @raw << BYE
        end
      end

      # Returns whether nothing runs and every end is acknowledged.
      def idle? = @lock.synchronize { holds_nothing? }

      # Returns the contexts of the tasks that have not ended.
      def held
        @lock.synchronize do
          absorb
          @held.values
        end
      end

      # Returns the context of a task that has not ended, or nil.
      def held_task(task)
        @lock.synchronize do
          absorb
          @held[task]
        end
      end

      # Returns the number of ends without an acknowledgement.
      def kept_count
        @lock.synchronize do
          absorb
          @kept.size
        end
      end

      # Returns the tasks that a resumed session names: running, and ended without an acknowledgement.
      def resumable
        @lock.synchronize do
          absorb
          running = @held.each_value.map { |context| { task: context.task.task, fence: context.task.fence } }
          (running + @kept.each_value.map { |ended| ended.entry.slice(:task, :fence) }).first(HELD)
        end
      end

      # Forgets acknowledged ends. A refused end is replaced by a failure that says why.
      def acknowledge(acks)
        change(wakes: @credit == @received) do
          absorb
          acks.each do |ack|
            token = "#{ack.task}.#{ack.fence}"
            if ack.result == "refused" && @kept.key?(token)
              replace(token, ack.why)
            else
              @kept.delete(token)
              @refused.delete(token)
            end
          end
        end
      end

      # Extends the lease from the sending of the answered beat, and ends its checkpoints.
      def alive(alive)
        checkpoints = @lock.synchronize do
          sent, checkpoints = @beats.answered(alive.n)
          @lease_end = [@lease_end, sent + @lease].max if sent
          checkpoints
        end
        checkpoints.each { |checkpoint| settle(checkpoint, alive) }
      end

      # Ends a request. A reply to none is ignored.
      def reply(reply)
        request = @lock.synchronize { @requests.answered(reply.request) }
        request&.promise&.fulfil(reply)
      end

      # Waits for something to send and returns it; nil when the connection or lease has ended.
      def take
        @lock.synchronize do
          until @closed
            now = monotonic
            return nil if now >= @lease_end

            @waiting = true # before the look at what has ended; a later end wakes this thread
            absorb
            parcel = next_parcel(now)
            return parcel unless parcel.empty?

            @changed.wait(@lock, [[@beats.next_time, @lease_end].min - now, 0.0].max)
          end
        ensure
          @waiting = false
        end
      end

      private

      def reject_all
        waiting = @lock.synchronize { @requests.abandon + @beats.abandon }
        error = Unavailable.new("the worker has no connection to a gateway any more")
        waiting.each { |one| one.promise.reject(error) }
      end

      # Runs the block under the lock, wakes the writer, and reports if a drain has ended.
      def change(wakes: true)
        idle = @lock.synchronize do
          yield
          wake if wakes || !@ends.empty?
          @draining && holds_nothing?
        end
        @on_idle.call if idle
      end

      # Takes over the attempts that have ended.
      def absorb
        until @done.empty?
          context, ended = @done.pop
          task = context.task
          @held.delete(task.task) if @held[task.task].equal?(context)
          @beats.forget(context)
          next if ended.nil?

          @kept[task.token] = ended
          @ends << ended
        end
      end

      def holds_nothing?
        absorb
        @held.empty? && @kept.empty?
      end

      def wake
        return unless @waiting

        @waiting = false
        @changed.signal
      end

      def replace(token, why)
        ended = @kept[token]
        ended = @refused.key?(token) ? Ends.given_up(ended) : Ends.refused(ended, why)
        @refused[token] = true
        @kept[token] = ended
        @ends << ended
      end

      def settle(checkpoint, alive)
        task = checkpoint.context.task_id
        if alive.lost.include?(task)
          checkpoint.promise.reject(Cancelled.new("lost"))
        elsif alive.refused.key?(task)
          checkpoint.promise.reject(Refused.new("invalid", alive.refused[task]))
        else
          checkpoint.promise.fulfil(nil)
        end
      end

      def next_parcel(now)
        raw = @raw
        @raw = []
        Parcel.new(raw, gather, @requests.take, @beats.take(now), raise_credit)
      end

      def gather
        size = 0
        count = @ends.first(ENDS_OF_A_MESSAGE).take_while do |ended|
          ended.references.each { |_, _, payload| size += payload.bytesize }
          size <= GATHERED_BYTES
        end.size
        @ends.shift([count, [1, @ends.size].min].max)
      end

      def raise_credit
        return if @draining

        room = [@window - @held.size, HELD - @held.size - @kept.size].min
        credit = @received + [room, 0].max
        return if credit <= @credit

        @credit = credit
      end

      def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
