# frozen_string_literal: true

require_relative "gateway_process"

# The client passes every case of sdk/conformance/clients.
class ClientsTest < Minitest::Test
  FOLDER = File.join(PROJECT, "sdk/conformance")

  def test_the_programs_of_the_guide_print_what_it_says
    GatewayProcess.program or skip("no program `onward`")
    Dir.mktmpdir do |folder|
      runner = ["python3", "#{FOLDER}/client_guide.py", "ruby", "#{folder}/guide.rb", "--"]
      out, status = Open3.capture2e(*runner, RbConfig.ruby, "-w", "-I", GatewayProcess::LIBRARY)
      assert_predicate status, :success?, out
    end
  end

  Dir.glob("clients/*.json", base: FOLDER).sort.each do |path|
    name = File.basename(path, ".json")
    define_method("test_#{name}") do
      GatewayProcess.program or skip("no program `onward`")
      driver = [RbConfig.ruby, "-w", File.join(__dir__, "client_driver.rb")]
      out, status = Open3.capture2e("python3", "#{FOLDER}/clients.py", "--only", name, "--", *driver)
      assert_predicate status, :success?, out
    end
  end
end
