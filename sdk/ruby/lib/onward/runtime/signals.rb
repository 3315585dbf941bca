# frozen_string_literal: true

module Onward
  module Runtime
    # The time in which SIGTERM and SIGINT go to a mailbox.
    class Signals
      NAMES = %w[TERM INT].freeze

      def initialize(mailbox)
        @previous = NAMES.to_h { |name| [name, trap(name) { mailbox.post_signal(name) }] }
      end

      # Gives the signals back to the handlers that they had before.
      def restore
        @previous.each { |name, previous| trap(name, previous || "DEFAULT") }
        @previous = {}
      end
    end
  end
end
