// Keeps what is shown up to date by one stream. Nothing is read while nothing changes or the page is hidden.

import { signal, useEffect, useRef, useState } from './html.js';
import { get, loadMe, me, serverTime } from './api.js';

/** The shortest time between two reads of one screen, in milliseconds. */
const INTERVAL = 200;

/** The time before another attempt to reach the server, in milliseconds. */
const RETRY = 1000;

/** The state of the connection: `live`, `paused` in a hidden window, or `lost`. */
export const connection = signal('paused');

/** The time of this moment by the clock of the server, which moves once a second while the page is visible. */
export const now = signal(serverTime());

/** @type {Set<() => void>} */
const listeners = new Set();

/** @type {EventSource | undefined} */
let source;
let retry = 0;
let wasOpen = false;

/** Reads again what is shown, for example after a change of the user. */
export function refresh() {
  for (const listener of listeners) listener();
}

function open() {
  close();
  if (document.hidden || !me.value) return;
  source = new EventSource('v1/changes');
  source.addEventListener('change', () => {
    // The screen has just been read when the first stream opens.
    const isFirst = connection.value !== 'live' && !wasOpen;
    connection.value = 'live';
    wasOpen = true;
    if (!isFirst) refresh();
  });
  source.addEventListener('bye', lose);
  source.onerror = lose;
}

function lose() {
  close();
  connection.value = 'lost';
  retry = window.setTimeout(async () => {
    try {
      await loadMe();
      open();
    } catch {
      lose();
    }
  }, RETRY);
}

function close() {
  clearTimeout(retry);
  source?.close();
  source = undefined;
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    close();
    connection.value = 'paused';
  } else {
    now.value = serverTime();
    open();
  }
});
addEventListener('pagehide', close);
me.subscribe((user) => (user ? open() : close()));
setInterval(() => {
  if (!document.hidden) now.value = serverTime();
}, 1000);

/**
 * @template T
 * @typedef {{ data: T | undefined, error: import('./api.js').Problem | undefined }} Loaded
 */

/**
 * Loads data now, when the key changes, and after each change of the store. What was loaded stays until then.
 * @template T
 * @param {string} key
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @returns {Loaded<T> & { reload: () => void }}
 */
export function useLoaded(key, load) {
  const [state, setState] = useState(/** @type {Loaded<T> & { key: string }} */ ({ key, data: undefined, error: undefined }));
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const none = { key, data: undefined, error: undefined };
    return follow(load, (loaded) => setState((old) => ({ ...(old.key === key ? old : none), ...loaded }))).stop;
  }, [key, attempt]);
  const current = state.key === key ? state : { data: undefined, error: undefined };
  return { data: current.data, error: current.error, reload: () => setAttempt(attempt + 1) };
}

/**
 * Loads data as `useLoaded` does, and not again once they can no longer change.
 * @template T
 * @param {string} key
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {(data: T) => boolean} isFinal
 * @returns {Loaded<T> & { reload: () => void }}
 */
export function useSettled(key, load, isFinal) {
  const last = useRef(/** @type {{ key: string, data: T } | null} */ (null));
  return useLoaded(key, async (signal) => {
    if (last.current?.key === key && isFinal(last.current.data)) return last.current.data;
    const data = await load(signal);
    last.current = { key, data };
    return data;
  });
}

/**
 * Loads now, after each change of the store, and when `run` is called; one load at a time.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {(loaded: Partial<Loaded<T>>) => void} set
 * @returns {{ run: () => void, stop: () => void }}
 */
export function follow(load, set) {
  const abort = new AbortController();
  let isRunning = false;
  let isStale = false;
  async function run() {
    if (isRunning) {
      isStale = true;
      return;
    }
    isRunning = true;
    const started = performance.now();
    try {
      const data = await load(abort.signal);
      now.value = serverTime();
      if (!abort.signal.aborted) set({ data, error: undefined });
    } catch (error) {
      if (!abort.signal.aborted) set({ error: /** @type {import('./api.js').Problem} */ (error) });
    }
    // A slow store is asked less often.
    const pause = Math.max(INTERVAL, 3 * (performance.now() - started));
    setTimeout(() => {
      isRunning = false;
      if (isStale && !abort.signal.aborted) {
        isStale = false;
        run();
      }
    }, pause);
  }
  listeners.add(run);
  run();
  const stop = () => {
    listeners.delete(run);
    abort.abort();
  };
  return { run, stop };
}

/**
 * Loads the JSON of a path.
 * @param {string} path
 */
export function usePath(path) {
  return useLoaded(path, (signal) => get(path, signal));
}
