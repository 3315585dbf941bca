# frozen_string_literal: true

# Checks the signatures in `sig`: they are valid, and each names a method that exists, with the same
# parameters. It needs the gem rbs, which comes with Ruby.

require "rbs"
require_relative "lib/onward/testing"

loader = RBS::EnvironmentLoader.new
loader.add(path: Pathname(__dir__) / "sig")
loader.add(library: "logger", version: nil)
environment = RBS::Environment.from_loader(loader).resolve_type_names
builder = RBS::DefinitionBuilder.new(env: environment)
faults = []

# Returns the names of keywords and the number of positional parameters that a signature has.
shape = lambda do |type|
  function = type.type
  keywords = function.required_keywords.keys + function.optional_keywords.keys
  [keywords.sort, function.required_positionals.size + function.optional_positionals.size]
end

# Returns the same of a method. One with `...` or a rest takes any.
shape_of = lambda do |method|
  kinds = method.parameters
  return nil if method.arity.negative? && kinds.empty? || kinds.any? { |kind, _| %i[rest keyrest].include?(kind) }

  [kinds.filter_map { |kind, name| name if %i[key keyreq].include?(kind) }.sort,
   kinds.count { |kind, _| %i[req opt].include?(kind) }]
end

check = lambda do |definition, owner, singleton|
  definition.methods.each do |name, signature|
    next unless signature.defined_in&.to_s&.start_with?("::Onward") && name != :initialize
    next if signature.defs.any? { |one| one.member.is_a?(RBS::AST::Members::AttrReader) } && owner.method_defined?(name)

    holder = singleton ? owner.singleton_class : owner
    next faults << "#{owner}: `#{name}` has a signature, but does not exist" unless holder.method_defined?(name)

    found = shape_of.call(holder.instance_method(name))
    stated = signature.method_types.map { |type| shape.call(type) }
    faults << "#{owner}##{name}: #{found} is not among #{stated}" unless found.nil? || stated.include?(found)
  end
end

names = environment.class_decls.keys.select { |name| name.to_s.start_with?("::Onward") }
names.each do |name|
  owner = Object.const_get(name.to_s.delete_prefix("::"))
  check.call(builder.build_instance(name), owner, false) if owner.is_a?(Class)
  check.call(builder.build_singleton(name), owner, true)
end
abort(faults.join("\n")) unless faults.empty?
puts "#{names.size} classes and modules agree with their signatures"
