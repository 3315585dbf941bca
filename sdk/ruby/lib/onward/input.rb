# frozen_string_literal: true

require_relative "payload"

module Onward
  # Inputs of handlers: how a payload becomes the first argument.
  module Input
    module_function

    # Returns a callable from the payload to the argument.
    #
    # `form` is `:json` (objects with String keys), `:symbols` (with Symbol keys), `:bytes`, a class
    # with members such as a Struct with `keyword_init`, or a callable that takes the JSON value.
    def reader(kind, form)
      case form
      when :json then ->(payload) { checked { Payload.decode(payload) } }
      when :symbols then ->(payload) { checked { Payload.decode(payload, symbols: true) } }
      when :bytes then ->(payload) { payload }
      else converter(kind, form)
      end
    end

    def converter(kind, form)
      if form.is_a?(Class) && form.respond_to?(:members)
        return ->(payload) { checked { build(form, Payload.decode(payload, symbols: true)) } }
      end
      return ->(payload) { checked { form.call(Payload.decode(payload)) } } if form.respond_to?(:call)

      raise ArgumentError, "input of `#{kind}` is #{form.inspect[0, 80]}; " \
                           "use :json, :symbols, :bytes, a Struct with keyword_init, or a callable"
    end

    # Returns an object of the class from the fields that it knows. Others are ignored.
    #
    # Every member must be there, unless the class has an `initialize` of its own with defaults: a
    # Struct would take a missing one for nil.
    def build(form, fields)
      unless fields.is_a?(Hash)
        raise PayloadError, "the payload is #{fields.inspect[0, 80]}; it must be an object for #{form}"
      end

      missing = form.members - fields.keys
      return form.new(**fields.slice(*form.members)) if missing.empty? || own_initialize?(form)

      raise PayloadError, "the payload has no field `#{missing.first}` of #{form}; send it, " \
                          "or give the class an `initialize` with a default"
    end

    def own_initialize?(form) = form.instance_method(:initialize).owner == form

    # Runs the block. A payload that the handler cannot take fails the task without a retry.
    def checked
      yield
    rescue PayloadError, ArgumentError, TypeError, KeyError, NoMatchingPatternError => e
      raise Fail, "the payload is not what the handler takes: #{e.message}"
    end

    private_class_method :converter, :build, :own_initialize?, :checked
  end
end
