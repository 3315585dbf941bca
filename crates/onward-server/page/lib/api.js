// Requests to the API. All paths are relative to the page, so they work below any prefix.

import { signal } from './html.js';

/**
 * @typedef {{ name: string, role: string, session?: string, store: string }} Me
 * @typedef {{ method: string, path: string, body?: unknown, yaml?: string }} Change a body is JSON, or the text of a template
 */

/** The user; null without a session; undefined before the first request. */
export const me = signal(/** @type {Me | null | undefined} */ (undefined));

/** The difference of the clocks above which that of the server counts, in milliseconds. Its header has whole seconds. */
const SKEW = 5000;

let skew = 0;

/** Returns the time of the server, as well as it is known. The clock of the browser may be wrong. */
export const serverTime = () => Date.now() + skew;

/** @param {Response} response */
function compareClocks(response) {
  const at = Date.parse(response.headers.get('date') ?? '');
  if (Number.isNaN(at)) return;
  const found = at - Date.now();
  skew = Math.abs(found) > SKEW ? found : 0;
}

/** A problem of the API, or of the way to it. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {{ code?: string, title?: string, detail?: string, remedy?: string, request_id?: string }} body
   */
  constructor(status, body) {
    super(body.detail ?? body.title ?? `the server returned status ${status}`);
    this.status = status;
    this.code = body.code ?? '';
    this.remedy = body.remedy ?? '';
    this.requestId = body.request_id ?? '';
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {RequestInit} options
 */
async function send(method, path, options) {
  let response;
  try {
    response = await fetch(path.replace(/^\//, ''), { method, credentials: 'same-origin', ...options });
  } catch (error) {
    if (/** @type {Error} */ (error).name === 'AbortError') throw error;
    throw new Problem(0, { code: 'unreachable', detail: 'the server cannot be reached', remedy: 'is `onward serve` running?' });
  }
  compareClocks(response);
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) me.value = null;
  throw new Problem(response.status, body);
}

/**
 * Reads JSON.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, signal) {
  const response = await send('GET', path, { signal });
  return response.status === 204 ? null : response.json();
}

/**
 * Reads a payload or a result: JSON, a text, or the number of bytes of anything else.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ text: string, is: 'json' | 'text' | 'bytes' | 'none' }>}
 */
export async function getContent(path, signal) {
  const response = await send('GET', path, { signal });
  if (response.status === 204) return { text: '', is: 'none' };
  const bytes = await response.arrayBuffer();
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (response.headers.get('content-type') !== 'application/json') return { text, is: 'text' };
    return { text: pretty(text), is: 'json' };
  } catch {
    return { text: `${bytes.byteLength} bytes that are not text`, is: 'bytes' };
  }
}

/**
 * Indents JSON. Numbers that JavaScript cannot hold would change, so a text that does not survive stays as it is.
 * @param {string} text
 */
function pretty(text) {
  const value = JSON.parse(text);
  return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
}

/**
 * Makes a change.
 * @param {Change} change
 * @returns {Promise<any>}
 */
export async function change({ method, path, body, yaml }) {
  /** @type {Record<string, string>} */
  const headers = { 'x-onward-page': '1' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (yaml !== undefined) headers['content-type'] = 'application/yaml';
  const response = await send(method, path, { headers, body: yaml ?? (body === undefined ? undefined : JSON.stringify(body)) });
  return response.status === 204 ? null : response.json();
}

/**
 * Signs in with a key, which the page does not keep.
 * @param {string} key
 */
export async function signIn(key) {
  await send('POST', 'v1/sessions', { headers: { authorization: `Bearer ${key}` } });
  await loadMe();
}

export async function signOut() {
  await change({ method: 'POST', path: 'v1/sign-out' });
  me.value = null;
}

/** Reads who is signed in. */
export async function loadMe() {
  try {
    me.value = await get('v1/me');
  } catch (error) {
    if (/** @type {Problem} */ (error).status !== 401) throw error;
  }
}

const ROLES = ['viewer', 'operator', 'developer', 'admin'];

/**
 * Returns true if the user has a role.
 * @param {string} role
 */
export function may(role) {
  return ROLES.indexOf(me.value?.role ?? '') >= ROLES.indexOf(role);
}

/** @param {string} name */
export const segment = (name) => encodeURIComponent(name);
