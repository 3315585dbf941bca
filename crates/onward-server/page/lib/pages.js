// A list of any length: pages are read as they come near the window, and forgotten when they are far from it.

import { useEffect, useRef, useState } from './html.js';
import { get } from './api.js';
import { follow } from './live.js';

/** The number of things on a page. */
const SIZE = 100;

/** The part of the list beside the window that is kept ready, in pixels. */
const MARGIN = 800;

/** The height of a row that was never shown, in pixels. */
const ROW = 31;

/** The number of pages on each side of those that are shown whose things stay in memory. */
const KEPT = 2;

/**
 * @typedef {{ cursor: string, items: any[] | null, height: number, count: number }} Page
 */

/** The pages of a list, of which the first has no cursor and each other one the cursor of the page before. */
export class Pages {
  /** @param {string} path @param {string} [cursor] */
  constructor(path, cursor = '') {
    this.path = path;
    /** @type {Page[]} */
    this.pages = [page(cursor)];
    this.first = 0;
    this.last = 0;
    /** @type {import('./api.js').Problem | undefined} */
    this.error = undefined;
    this.isRead = false;
  }

  /**
   * Reads the pages that are shown. A page whose end has moved makes all behind it new ones.
   * @param {AbortSignal} signal
   */
  async read(signal) {
    for (let number = this.first; number <= this.last && number < this.pages.length; number++) {
      const page = /** @type {Page} */ (this.pages[number]);
      const cursor = page.cursor ? `&cursor=${encodeURIComponent(page.cursor)}` : '';
      const { items, next } = await get(`${this.path}${this.path.includes('?') ? '&' : '?'}limit=${SIZE}${cursor}`, signal);
      Object.assign(page, { items, count: items.length });
      if (page.height === 0) page.height = items.length * ROW;
      this.follow(number, next);
    }
    this.isRead = true;
    this.pages.forEach((page, number) => {
      if (number < this.first - KEPT || number > this.last + KEPT) page.items = null;
    });
  }

  /** @param {number} number @param {string | null} next */
  follow(number, next) {
    if (!next) this.pages.length = number + 1;
    else if (this.pages[number + 1]?.cursor !== next) this.pages.splice(number + 1, Infinity, page(next));
  }

  /**
   * Sets which pages are near the window. Returns true if one of them has to be read.
   * @param {number} top the part of the list above the window, in pixels
   * @param {number} height the height of the window, in pixels
   */
  look(top, height) {
    let at = 0;
    const near = this.pages.map((page) => {
      const from = at;
      at += page.height || SIZE * ROW;
      return at > top - MARGIN && from < top + height + MARGIN;
    });
    this.first = Math.max(near.indexOf(true), 0);
    this.last = Math.max(near.lastIndexOf(true), this.first);
    return this.pages.slice(this.first, this.last + 1).some((page) => page.items === null);
  }

  /**
   * Returns the parts of the list for a table: the pages near the window with their rows, and the space of the others.
   * @returns {{ key: string, number?: number, items?: any[], height: number }[]}
   */
  parts() {
    const space = (/** @type {Page[]} */ pages) => pages.reduce((sum, page) => sum + page.height, 0);
    const shown = this.pages.slice(this.first, this.last + 1).map((page, place) => {
      const number = this.first + place;
      return { key: `page ${number}`, number, items: page.items ?? undefined, height: page.height || (number > 0 ? SIZE * ROW : 0) };
    });
    return [{ key: 'above', height: space(this.pages.slice(0, this.first)) }, ...shown, { key: 'below', height: space(this.pages.slice(this.last + 1)) }];
  }

  /** The number of things, if the end of the list was reached. */
  get total() {
    const isEnd = this.pages.every((page) => page.count > 0 || page.items !== null);
    return isEnd ? this.pages.reduce((sum, page) => sum + page.count, 0) : undefined;
  }
}

/** @param {string} cursor @returns {Page} */
function page(cursor) {
  return { cursor, items: null, height: 0, count: 0 };
}

/**
 * Follows a list whose table is in the element of the returned `root`. Another path needs another component.
 * @param {string} path
 * @param {string} [cursor]
 */
export function usePages(path, cursor) {
  const list = useRef(/** @type {Pages | null} */ (null));
  list.current ??= new Pages(path, cursor);
  const pages = list.current;
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const [version, setVersion] = useState(0);
  const reading = useRef(/** @type {{ run: () => void } | null} */ (null));
  const redraw = () => setVersion((number) => number + 1);
  useEffect(() => {
    const read = follow((signal) => pages.read(signal), ({ error }) => {
      pages.error = error;
      redraw();
    });
    reading.current = read;
    return read.stop;
  }, []);
  const look = () => {
    const table = root.current?.querySelector('table');
    if (!table) return;
    measure(table, pages);
    const top = -(table.tBodies[0]?.getBoundingClientRect().top ?? 0);
    const before = `${pages.first}-${pages.last}`;
    // After a failure the next change of the store, or the user, causes another attempt.
    if (pages.look(top, innerHeight) && !pages.error) reading.current?.run();
    if (before !== `${pages.first}-${pages.last}`) redraw();
  };
  useEffect(look, [version]);
  useEffect(() => onFrame(look), []);
  return { pages, root, reload: () => reading.current?.run() };
}

/** @param {HTMLTableElement} table @param {Pages} pages */
function measure(table, pages) {
  for (const body of table.tBodies) {
    const page = pages.pages[Number(body.dataset.page)];
    if (body.dataset.page && page?.items) page.height = body.offsetHeight;
  }
}

/**
 * Calls a function at most once a frame while the window scrolls or changes its size.
 * @param {() => void} act
 */
function onFrame(act) {
  let frame = 0;
  const plan = () => {
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      act();
    });
  };
  addEventListener('scroll', plan, { passive: true });
  addEventListener('resize', plan);
  return () => {
    cancelAnimationFrame(frame);
    removeEventListener('scroll', plan);
    removeEventListener('resize', plan);
  };
}
