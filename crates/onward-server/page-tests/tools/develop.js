// Serves the page from the source folder, and the API of a running server beside it: no build while one writes.
//
//   node tools/develop.js http://127.0.0.1:7070 [PORT]

import { createServer, request } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';

const root = join(import.meta.dirname, '../../page');
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const PACKAGES = [
  ['from"preact"', 'from"./preact.js"'],
  ['from"preact/hooks"', 'from"./hooks.js"'],
  ['from"@preact/signals-core"', 'from"./signals-core.js"'],
];

async function serveFile(path, response) {
  const name = normalize(path === '/' ? '/index.html' : path.replace('/assets/VERSION', ''));
  try {
    let text = await readFile(join(root, name), 'utf8');
    if (name === '/index.html') text = text.replace('MODULES\n', '');
    if (name.startsWith('/vendor/')) for (const [from, to] of PACKAGES) text = text.replaceAll(from, to);
    response.writeHead(200, {
      'content-type': TYPES[extname(name)] ?? 'text/plain',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'none'; frame-ancestors 'none'",
    });
    response.end(text);
  } catch {
    response.writeHead(404).end();
  }
}

/** Listens on a port, for the API of `target`. Returns the server. */
export function develop(target, port) {
  const server = createServer((incoming, response) => pass(new URL(target), incoming, response));
  return new Promise((done) => server.listen(port, '127.0.0.1', () => done(server)));
}

function pass(target, incoming, response) {
  const { pathname } = new URL(incoming.url, 'http://localhost');
  if (!pathname.startsWith('/v1/')) return serveFile(pathname, response);
  const options = { host: target.hostname, port: target.port, path: incoming.url, method: incoming.method, headers: incoming.headers };
  const outgoing = request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  response.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

if (process.argv[1] === import.meta.filename) {
  const server = await develop(process.argv[2] ?? 'http://127.0.0.1:7070', Number(process.argv[3] ?? 7071));
  console.log(`http://127.0.0.1:${server.address().port}`);
}
