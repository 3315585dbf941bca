# frozen_string_literal: true

require_relative "onward/version"
require_relative "onward/errors"
require_relative "onward/worker"

# Workers for Onward: durable tasks and workflows, in pure Ruby.
module Onward
end
