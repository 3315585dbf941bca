# frozen_string_literal: true

module Onward
  # The value of the header `Authorization`: a key, or the key file of a server on this machine.
  class Credential
    LOCAL = %w[127.0.0.1 ::1 [::1] localhost].freeze

    def initialize(key, key_file, host)
      key ||= ENV.fetch("ONWARD_KEY", nil) unless key_file
      @fixed = "Bearer #{key}" unless key.to_s.empty?
      @path = key_file || (beside_the_store if LOCAL.include?(host))
    end

    # Returns the value, or nil without a key. The file is read each time: a server that starts
    # writes it again.
    def header
      return @fixed if @fixed || @path.nil?

      File.read(@path).strip.delete_prefix("Authorization: ")
    rescue SystemCallError
      nil # the server says then that a credential is missing
    end

    private

    def beside_the_store
      store = ENV.fetch("ONWARD_STORE", "")
      "#{store.empty? ? 'onward.db' : store.delete_prefix('sqlite:').delete_prefix('//')}.serve-key"
    end
  end
  private_constant :Credential
end
