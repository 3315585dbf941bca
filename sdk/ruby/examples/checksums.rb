# frozen_string_literal: true

# Checksums of a folder: one task lists it, one child for each file, and the results come together.
#
#     onward submit --kind checksums --wait '{"folder": "."}' &
#     onward work --app "ruby checksums.rb"

require "digest"
require "onward"

BLOCK_BYTES = 1_048_576

Folder = Struct.new(:folder, keyword_init: true)
SourceFile = Struct.new(:path, keyword_init: true)

app = Onward::Worker.new(name: "checksums")

app.handler("checksums", input: Folder, retry: 3) do |task, ctx|
  next ctx.children.to_h { |child| child.value.values_at("path", "sha256") } if ctx.resumed?
  raise Onward::Fail, "`#{task.folder}` is no folder" unless File.directory?(task.folder)

  paths = Dir.children(task.folder).sort.map { |name| File.join(task.folder, name) }
  paths.select { |path| File.file?(path) }.each { |path| ctx.spawn("checksum", SourceFile.new(path: path)) }
  ctx.await_children("listed", fail_fast: true)
end

app.handler("checksum", input: SourceFile, retry: 3, timeout: 600) do |task, ctx|
  digest = Digest::SHA256.new
  File.open(task.path, "rb") do |file|
    while (block = file.read(BLOCK_BYTES))
      ctx.check!
      digest << block
      ctx.progress(done: file.pos, total: file.size)
    end
  end
  { path: task.path, sha256: digest.hexdigest }
end

app.run
