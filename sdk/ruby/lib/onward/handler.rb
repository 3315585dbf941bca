# frozen_string_literal: true

module Onward
  # The base of handlers that are classes. A new object handles each attempt.
  #
  #   class Resize < Onward::Handler
  #     kind "resize"
  #     options retry: 5, timeout: 60
  #
  #     def call(task, ctx)
  #       { width: 200 }
  #     end
  #   end
  #
  #   app.register(Resize)
  class Handler
    class << self
      # States the kind, or returns it.
      def kind(name = nil)
        @kind = name if name
        @kind || (superclass.kind if superclass.respond_to?(:kind))
      end

      # States options of the kind, those of Worker#handler, or returns them with those of the parent.
      def options(**options)
        @options = (@options || {}).merge(options)
        superclass.respond_to?(:options) ? superclass.options.merge(@options) : @options
      end
    end
  end
end
