# frozen_string_literal: true

require_relative "../protocol/frames"

module Onward
  module Runtime
    # The messages that are sent next, taken from the outbox in one piece.
    Parcel = Struct.new(:raw, :ends, :requests, :beat, :credit) do
      def empty? = raw.empty? && ends.empty? && requests.empty? && beat.nil? && credit.nil?

      # Returns the messages as bytes.
      def encode
        bytes = raw.join.force_encoding(Encoding::BINARY)
        encode_ends(ends, bytes) unless ends.empty?
        requests.each { |number, one| bytes << frames({ **one.header, request: number }, one.payloads) }
        encode_beat(bytes) if beat
        bytes << frames({ t: "grant", credit: credit }) if credit
        bytes
      end

      private

      def frames(header, payloads = []) = Protocol::Frames.encode(header, payloads)

      # Writes the messages that carry the ends: one, or more where a header would be too long.
      def encode_ends(some, bytes)
        payloads = []
        some.each do |one|
          one.references.each do |object, name, payload|
            object[name] = payloads.size
            payloads << payload
          end
        end
        return halve(some, bytes) if payloads.size > Protocol::PAYLOADS && some.size > 1

        bytes << frames({ t: "end", ends: some.map(&:entry) }, payloads)
      rescue ProtocolError
        raise if some.size == 1

        halve(some, bytes)
      end

      def halve(some, bytes)
        middle = some.size / 2
        encode_ends(some.take(middle), bytes)
        encode_ends(some.drop(middle), bytes)
      end

      def encode_beat(bytes)
        entries = {}
        beat.touched.each do |context|
          entry = entries[context.task_id] = { task: context.task_id, fence: context.task.fence }
          entry[:progress] = context.progress_fields if context.progress_fields
        end
        payloads = beat.checkpoints.each_with_index.map do |checkpoint, at|
          task = checkpoint.context.task
          (entries[task.task] ||= { task: task.task, fence: task.fence })[:checkpoint] = at
          checkpoint.payload
        end
        bytes << beat_frames(entries.values, payloads)
      end

      def beat_frames(entries, payloads)
        header = { t: "beat", n: beat.number }
        header[:tasks] = entries unless entries.empty?
        frames(header, payloads)
      rescue ProtocolError
        # Progress is not worth a lease: without it, the entries of 512 tasks fit.
        entries.each { |entry| entry.delete(:progress) }
        frames(header, payloads)
      end
    end
  end
end
