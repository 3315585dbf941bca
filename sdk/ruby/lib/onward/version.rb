# frozen_string_literal: true

module Onward
  VERSION = "0.1.0"
end
