// Filters of tasks as lines of text, and those that this browser keeps.

import { signal } from './html.js';

/** The place of the kept filters in the storage of the browser. */
const PLACE = 'onward.filters';

/** The largest number of kept filters. */
const MOST = 20;

/** The kept filters, as lines. Another window of the browser may change them. */
export const keptFilters = signal(read());

addEventListener('storage', (event) => {
  if (event.key === PLACE) keptFilters.value = read();
});

/** @returns {string[]} */
function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE) ?? '[]');
    return Array.isArray(kept) ? kept.filter((line) => typeof line === 'string' && line !== '').slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** @param {string[]} lines */
function write(lines) {
  keptFilters.value = lines;
  try {
    localStorage.setItem(PLACE, JSON.stringify(lines));
  } catch {
    // A browser that stores nothing keeps them until the page is closed.
  }
}

/** @param {string} line */
export function keepFilter(line) {
  write([...keptFilters.value, line].slice(-MOST));
}

/** @param {string} line */
export function forgetFilter(line) {
  write(keptFilters.value.filter((kept) => kept !== line));
}

/**
 * Writes a filter as the line that the search reads.
 * @param {Record<string, string>} filter
 */
export function filterLine(filter) {
  return Object.entries(filter).map(([name, value]) => `${name}:${/^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}`).join(' ');
}

/**
 * Reads the value of a condition, which may be quoted.
 * @param {string} text
 */
export function unquote(text) {
  if (!/^".*"$/s.test(text)) return text;
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
}
