// The address of a screen: everything behind `#`, so that no server needs to know it.

import { signal } from './html.js';

/**
 * @typedef {{ parts: string[], query: Record<string, string> }} Route
 */

/** The route that is shown. */
export const route = signal(read());

/** @returns {Route} */
function read() {
  const [path = '', query] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean).map(decode);
  return { parts, query: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Returns the address of a screen.
 * @param {string[]} parts
 * @param {Record<string, string | undefined>} [query]
 */
export function to(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(/** @type {[string, string][]} */ (kept)).toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** @param {string} address */
export function go(address) {
  location.hash = address;
}

addEventListener('hashchange', () => {
  route.value = read();
  scrollTo(0, 0);
});
