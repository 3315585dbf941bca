# frozen_string_literal: true

require_relative "gateway_process"

# The README's code runs, and its quick start does what it states.
class ReadmeTest < Minitest::Test
  README = File.read(File.expand_path("../README.md", __dir__))
  RUBY = README.scan(/```ruby\n(.*?)```/m).flatten
  SHELL = README[/```sh\n(.*?)```/m, 1]

  RUBY.each_with_index do |code, number|
    define_method("test_code_#{number}_runs") do
      # A worker without a gateway says so, after everything before it has run.
      command = [RbConfig.ruby, "-w", "-I", GatewayProcess::LIBRARY, "-"]
      out, status = Open3.capture2e({ "ONWARD_GATEWAY" => nil, "ONWARD_TEST_LINES" => nil }, *command, stdin_data: code)
      if code.include?("app.run")
        assert_includes out, "no gateway: ONWARD_GATEWAY is not set"
      else
        assert_predicate status, :success?, out
      end
      refute_includes out, "warning"
    end
  end

  def test_the_quick_start_does_what_it_states
    program = GatewayProcess.program or skip("no program `onward`")
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "app.rb"), RUBY[0])
      path = [File.dirname(program), RbConfig::CONFIG["bindir"], ENV.fetch("PATH")].join(":")
      environment = { "PATH" => path, "RUBYLIB" => GatewayProcess::LIBRARY, "ONWARD_STORE" => nil }
      out, err, status = Open3.capture3(environment, "sh", "-ec", "#{SHELL}wait $! || test $? = 130", chdir: folder)
      assert_predicate status, :success?, err
      assert_equal ['"Hello, Ada"', '"Hallo, Grace"'], out.lines(chomp: true)
    end
  end
end
