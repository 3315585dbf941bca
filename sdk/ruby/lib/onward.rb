# frozen_string_literal: true

require_relative "onward/version"
require_relative "onward/client"
require_relative "onward/errors"
require_relative "onward/worker"

# Workers and clients for Onward: durable tasks and workflows, in pure Ruby.
module Onward
end
