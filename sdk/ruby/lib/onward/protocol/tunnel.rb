# frozen_string_literal: true

require "json"
require "net/http"
require "openssl"
require "socket"
require "uri"

module Onward
  module Protocol
    # The HTTP carrier: one connection, whose bytes travel in requests between a socket pair and the
    # gateway. A thread carries each direction. Both count bytes, so that a lost request can be
    # repeated.
    class Tunnel
      # The largest number of bytes of one request.
      SEND_BYTES = 262_144
      # The time for which a request waits for bytes of the gateway, in seconds.
      WAIT = 25
      # The time after which a request counts as lost, in seconds.
      REQUEST = 35
      # The time for which a lost request is repeated, before the connection counts as lost.
      LOST = 10.0
      PAUSE = 0.1
      # The time that the last request of a connection has, in seconds.
      LEAVE = 2.0

      # The status of a request without a response, and those of a server that is busy.
      REPEATED = [0, 409, 429, 503].freeze
      BROKEN = [SystemCallError, SocketError, IOError, Timeout::Error, Net::HTTPBadResponse, Net::ProtocolError,
                OpenSSL::SSL::SSLError].freeze

      # The gateway has ended the connection.
      class Ended < StandardError; end

      private_constant :SEND_BYTES, :WAIT, :REQUEST, :LOST, :PAUSE, :LEAVE, :REPEATED, :BROKEN, :Ended

      def initialize(url, key)
        @url = URI.parse(url)
        @path = @url.path.delete_suffix("/")
        @headers = { "Content-Type" => "application/octet-stream", "Accept-Encoding" => "identity" }
        @headers["Authorization"] = "Bearer #{key}" if key
        @closed = false
      end

      # Opens the connection and returns the worker's end of it.
      #
      # Raises SystemCallError if the server cannot be reached or refuses it.
      def open
        status, body = with_link { |link| exchange(link, "/v1/work", "") }
        raise Errno::ECONNREFUSED, "the server refuses workers: #{problem(status, body)}" if status != 201

        @name = JSON.parse(body)["connection"]
        @ours, theirs = UNIXSocket.pair
        @threads = [carry { |link| send_all(link) }, carry { |link| receive_all(link) }]
        theirs
      rescue *(BROKEN - [SystemCallError]) => e
        raise Errno::ECONNREFUSED, e.message
      end

      # Lets the last bytes and the close of the worker reach the gateway, for a limited time.
      def finish
        @threads.first.join(LEAVE)
        @closed = true
      end

      private

      def carry(&run)
        thread = Thread.new do
          with_link { |link| run.call(link) }
        rescue Ended, *BROKEN
          nil # the reader of the worker sees the end of its socket
        ensure
          @closed = true
          shut
        end
        thread.name = "onward-http"
        thread
      end

      def shut
        @ours.shutdown
      rescue SystemCallError, IOError
        nil # it has ended already
      end

      # Carries bytes of the worker, until it closes its socket.
      def send_all(link)
        sent = 0
        while (data = read)
          repeat(link, "send?from=#{sent}", data)
          sent += data.bytesize
        end
        leave(link)
      end

      # Asks the gateway to close the connection, until there is a response, for a limited time. The
      # gateway may have closed it before.
      def leave(link)
        limit = monotonic + LEAVE
        until @closed
          status, = attempt(link, "/v1/work/#{@name}", nil, Net::HTTP::Delete)
          return if !REPEATED.include?(status) || monotonic > limit

          sleep(PAUSE)
        end
      end

      def read
        @ours.readpartial(SEND_BYTES)
      rescue EOFError, Errno::ECONNRESET
        nil
      end

      # Carries bytes of the gateway, until either side closes.
      def receive_all(link)
        received = 0
        until @closed
          data = repeat(link, "receive?from=#{received}&wait_ms=#{WAIT * 1000}", "")
          @ours.write(data)
          received += data.bytesize
        end
      end

      # Sends a request until there is a response, for a limited time.
      def repeat(link, path, body)
        limit = nil
        loop do
          status, data = attempt(link, "/v1/work/#{@name}/#{path}", body)
          return data if [200, 204].include?(status)
          raise Ended, problem(status, data) unless REPEATED.include?(status)

          limit ||= monotonic + LOST
          sleep(PAUSE)
          raise Ended, "the server does not respond" if @closed || monotonic > limit
        end
      end

      def attempt(link, path, body, method = Net::HTTP::Post)
        exchange(link, path, body, method)
      rescue *BROKEN
        finish_link(link)
        [0, ""]
      end

      def exchange(link, path, body, method = Net::HTTP::Post)
        request = method.new(@path + path, @headers)
        request.body = body if body
        link.start unless link.started?
        response = link.request(request)
        data = response.body || ""
        # Net::HTTP takes a body that was cut for the whole.
        raise EOFError, "the response was cut" if data.bytesize < response["Content-Length"].to_i

        [response.code.to_i, data]
      end

      def with_link
        link = Net::HTTP.new(@url.hostname, @url.port)
        link.use_ssl = @url.scheme == "https"
        link.open_timeout = link.read_timeout = link.write_timeout = REQUEST
        link.max_retries = 0
        link.keep_alive_timeout = REQUEST
        yield link
      ensure
        finish_link(link)
      end

      def finish_link(link)
        link.finish if link.started?
      rescue IOError
        nil # it has ended already
      end

      def problem(status, body)
        fields = JSON.parse(body)
        "#{fields.fetch('code')}: #{fields.fetch('detail')}; #{fields['remedy']}"
      rescue JSON::ParserError, KeyError, TypeError, NoMethodError
        "status #{status}" # no problem document, but the page of a proxy
      end

      def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
