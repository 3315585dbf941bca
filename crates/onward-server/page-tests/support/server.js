// A server on a store of its own, and the program `onward` beside it.

import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const PROGRAM = process.env.ONWARD_BIN ?? resolve(import.meta.dirname, '../../../../target/debug/onward');

/** The longest time for which a server may start, in milliseconds. */
const START = 60_000;

export class Server {
  /** Starts a server on a new store, or on one that an earlier server used. */
  static async start({ folder = mkdtempSync(join(tmpdir(), 'onward-page-')), port = 0, options = [], isDemo = false } = {}) {
    const server = new Server();
    server.folder = folder;
    // The demonstration has its store in memory, and accepts no other one.
    server.store = isDemo ? undefined : join(folder, 'onward.db');
    server.children = [];
    server.process = server.spawn(['serve', '--json', '--listen', `127.0.0.1:${port}`, ...options]);
    const { listening, link } = await firstJson(server.process);
    Object.assign(server, { base: `${listening}/`, link, port: Number(new URL(listening).port) });
    if (process.env.ONWARD_PAGE_SOURCE) await server.serveSource(listening);
    server.key = isDemo ? await server.useLink() : readFileSync(`${server.store}.serve-key`, 'utf8').trim().split(' ').at(-1);
    return server;
  }

  /** Uses the one-time link as a program does, which makes a key. */
  async useLink() {
    return (await (await fetch(this.link)).json()).key;
  }

  /** Serves the page from its source instead of from the program, while it is being changed. */
  async serveSource(listening) {
    const { develop } = await import('../tools/develop.js');
    this.source = await develop(listening, 0);
    const { port } = this.source.address();
    Object.assign(this, { base: `http://127.0.0.1:${port}/`, link: this.link?.replace(`${listening}`, `http://127.0.0.1:${port}`) });
  }

  /** The environment of the program, which names the store of this server alone. */
  get environment() {
    const { ONWARD_STORE: _, ...others } = process.env;
    return this.store ? { ...others, ONWARD_STORE: this.store } : others;
  }

  spawn(parameters) {
    const child = spawn(PROGRAM, parameters, { cwd: this.folder, env: this.environment, stdio: ['ignore', 'pipe', 'inherit'] });
    this.children.push(child);
    return child;
  }

  /** Runs a command to its end and returns what it prints. */
  run(...parameters) {
    return execFileSync(PROGRAM, parameters, { cwd: this.folder, env: this.environment, encoding: 'utf8' });
  }

  /** Starts a process that carries on runs. */
  workWorkflows() {
    return this.spawn(['work', '--workflows', '--quiet']);
  }

  async request(method, path, body) {
    const headers = { authorization: `Bearer ${this.key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const response = await fetch(new URL(path, this.base), { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  get(path) {
    return this.request('GET', path);
  }

  post(path, body) {
    return this.request('POST', path, body);
  }

  /** Submits a task and returns its number. */
  async submit(task) {
    return (await this.post('v1/tasks', task)).id;
  }

  /** Creates a key of a role. */
  async createKey(role, name = role) {
    return (await this.post('v1/keys', { name, role })).key;
  }

  /** Ends a process as a crash does, and waits for its end. */
  static async kill(child) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill('SIGKILL');
    await ended;
  }

  async stop({ keep = false } = {}) {
    this.source?.closeAllConnections();
    this.source?.close();
    for (const child of this.children.reverse()) await Server.kill(child);
    if (!keep) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Reads standard output until it has one JSON value. */
function firstJson(child) {
  return new Promise((done, fail) => {
    let text = '';
    const timer = setTimeout(() => fail(new Error(`the server has not started: ${text}`)), START);
    child.once('exit', (code) => fail(new Error(`the server ended with ${code}: ${text}`)));
    child.stdout.on('data', (chunk) => {
      text += chunk;
      try {
        done(JSON.parse(text));
        clearTimeout(timer);
      } catch {
        // The value is not whole yet.
      }
    });
  });
}
