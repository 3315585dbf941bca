# frozen_string_literal: true

require "json"
require "net/http"
require "openssl"
require "uri"
require_relative "attempts"
require_relative "credential"
require_relative "errors"

module Onward
  # HTTP requests over kept connections, repeated until they succeed or the time for it is over.
  # Any number of threads may use it.
  class Transport
    DEFAULT_URL = "http://127.0.0.1:7070"
    # The longest time to connect, in seconds.
    CONNECT = 10
    # The longest time without a byte on an event stream; the server sends one every 15 s.
    QUIET = 45
    # The largest number of idle connections that are kept.
    KEPT = 16

    CLASSES = {
      400 => Invalid, 401 => Denied, 403 => Denied, 404 => NotFound, 409 => Conflict, 412 => Conflict,
      413 => Invalid, 415 => Invalid, 422 => Invalid, 429 => Overloaded, 503 => Overloaded
    }.freeze
    REPEATED = [429, 502, 503, 504].freeze
    BROKEN = [SystemCallError, SocketError, IOError, Timeout::Error, Net::HTTPBadResponse, Net::ProtocolError,
              OpenSSL::SSL::SSLError].freeze

    attr_reader :url, :retry_for

    def initialize(url, key, key_file:, timeout:, retry_for:)
      text = url || ENV.fetch("ONWARD_URL", "")
      @address = address(text.empty? ? DEFAULT_URL : text)
      @url = @address.to_s.delete_suffix("/")
      @credential = Credential.new(key, key_file, @address.host)
      @timeout = timeout
      @retry_for = retry_for
      @lock = Mutex.new
      @idle = []
    end

    # Sends a request until there is a response, and returns its body.
    #
    # `wait` is the time in seconds for which the server may delay its response. A request that is
    # not repeatable is sent again only if it certainly had no effect. Raises Problem for a response
    # with an error, and Unavailable without a response.
    def send(method, path, body: nil, headers: {}, repeatable: true, wait: 0)
      attempts = Attempts.new(@retry_for)
      begin
        once(method, path, body, headers, repeatable, wait)
      rescue Problem => e
        raise unless may_repeat?(e, repeatable)

        attempts.failed(e, least: e.retry_after)
        retry
      rescue Lost => e
        raise Unavailable, lost_text(e) if e.sent && !repeatable

        attempts.failed(unavailable(e))
        retry
      end
    end

    # Returns the error of a server that does not respond.
    def unavailable(lost)
      Unavailable.new("#{@url} does not respond (#{lost.message}); start it by `onward serve`, or set ONWARD_URL")
    end

    # Opens an event stream behind a cursor, and yields each piece of it. Returns when it ends.
    #
    # Raises Lost and Problem.
    def stream(path, cursor, &block)
      headers = { "Accept" => "text/event-stream" }
      headers["Last-Event-ID"] = cursor if cursor
      connection = connect(QUIET)
      connection.request(request("GET", path, nil, headers, @credential.header)) do |response|
        raise problem(response) if response.code.to_i >= 400

        block.call(nil) # it is open
        response.read_body(&block)
      end
    rescue *BROKEN => e
      raise Lost.new(e, sent: true)
    ensure
      finish(connection)
    end

    # Closes the idle connections.
    def close
      idle = @lock.synchronize { @idle.tap { @idle = [] } }
      idle.each { |connection| finish(connection) }
    end

    # Returns whether an error may be gone at the next attempt.
    def passing?(problem) = REPEATED.include?(problem.status)

    private

    def address(text)
      address = URI.parse(text)
      return address if address.is_a?(URI::HTTP) && address.host

      raise URI::InvalidURIError
    rescue URI::InvalidURIError
      raise ArgumentError, "url is `#{text}`; write it as http://HOST:PORT"
    end

    def once(method, path, body, headers, repeatable, wait)
      credential = @credential.header
      response = exchange(request(method, path, body, headers, credential), repeatable, @timeout + wait)
      return response.body || "" if response.code.to_i < 400

      # A server that was started again has written a new key file.
      if response.code == "401" && @credential.header != credential
        return once(method, path, body, headers, repeatable, wait)
      end

      raise problem(response)
    end

    def exchange(request, repeatable, limit)
      # A kept connection may be dead, which shows only after the request was sent.
      connection = (@lock.synchronize { @idle.pop } if repeatable) || connect(limit)
      connection.read_timeout = limit
      response = connection.request(request)
      check_length(response)
      keep(connection)
      response
    rescue *BROKEN => e
      finish(connection)
      close # the idle ones have probably broken too
      raise Lost.new(e, sent: true)
    end

    # Net::HTTP takes a body that was cut for the whole.
    def check_length(response)
      stated = response["Content-Length"].to_i
      raise EOFError, "the response was cut" if response.body.to_s.bytesize < stated
    end

    def connect(limit)
      connection = Net::HTTP.new(@address.host, @address.port)
      connection.use_ssl = @address.scheme == "https"
      connection.open_timeout = [CONNECT, limit].min
      connection.read_timeout = limit
      connection.max_retries = 0
      connection.keep_alive_timeout = 60
      connection.start
    rescue *BROKEN => e
      raise Lost.new(e, sent: false)
    end

    def keep(connection)
      is_kept = connection.started? && @lock.synchronize { @idle.size < KEPT && @idle.push(connection) }
      finish(connection) unless is_kept
    end

    def finish(connection)
      connection.finish if connection&.started?
    rescue IOError
      nil # it has ended already
    end

    def request(method, path, body, headers, credential)
      request = Net::HTTPGenericRequest.new(method, !body.nil?, true, @address.path.delete_suffix("/") + path)
      request["Accept"] = "application/json"
      # Otherwise Net::HTTP asks for compressed bodies, whose length is another.
      request["Accept-Encoding"] = "identity"
      request["Authorization"] = credential if credential
      request["Content-Type"] = "application/json" if body
      headers.each { |name, value| request[name] = value }
      request.body = body
      request
    end

    # Returns the error of a response, which may be that of a proxy.
    def problem(response)
      status = response.code.to_i
      fields = fields_of(response.body)
      fields ||= { "code" => "http_#{status}", "detail" => response.message.to_s,
                   "remedy" => "look at the proxy, or at the url" }
      after = response["Retry-After"]
      CLASSES.fetch(status, Problem).new(
        fields["code"], fields["detail"].to_s, fields["remedy"].to_s,
        status: status, field: fields["field"], request_id: fields["request_id"],
        retry_after: (after.to_i if after&.match?(/\A\d+\z/))
      )
    end

    def fields_of(body)
      fields = JSON.parse(body.to_s)
      fields if fields.is_a?(Hash) && fields.key?("code")
    rescue JSON::ParserError
      nil
    end

    def lost_text(lost)
      "#{@url}: the connection was lost before the response (#{lost.message}); look whether the request took effect"
    end

    def may_repeat?(problem, repeatable)
      # A server that is stopping, or has no room, did nothing.
      passing?(problem) && (repeatable || problem.status == 429 || problem.code == "stopping")
    end
  end
  private_constant :Transport
end
