// Keys: everything works without a mouse.

import { html, signal, useEffect, useRef } from './html.js';
import { go, to } from './route.js';

/** The places that `g` and a letter lead to. */
const PLACES = /** @type {Record<string, [string, string]>} */ ({
  h: ['', 'Home'],
  q: ['queues', 'Queues'],
  t: ['tasks', 'Tasks'],
  w: ['workflows', 'Workflows'],
  o: ['orchestrations', 'Orchestrations'],
  d: ['dead', 'Dead letters'],
  i: ['inbox', 'Inbox'],
  s: ['schedules', 'Schedules'],
  l: ['limits', 'Limits'],
});

const isHelpOpen = signal(false);

/** True while `/` leads to a screen with a search, whose frame then moves the focus there. */
export const isSearchWanted = signal(false);

/** The row that `j` and `k` move. */
function move(/** @type {number} */ step) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('tr[data-row]')]);
  const place = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[Math.min(Math.max(place + step, 0), rows.length - 1)];
  /** @type {HTMLElement | null | undefined} */ (row?.querySelector('a') ?? row?.querySelector('button'))?.focus();
}

export function listenForKeys() {
  let isGoing = false;
  addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    // A closed dialog keeps the focus until it is removed a moment later: the next key is already for the screen.
    const isTyping = target.closest?.('input:not([type=checkbox]), textarea, select, dialog[open]');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (isGoing && PLACES[key]) {
      const [path] = PLACES[key];
      go(to(path ? [path] : []));
    } else if (key === '/') {
      event.preventDefault();
      const search = /** @type {HTMLElement | null} */ (document.querySelector('[data-search]'));
      search?.focus();
      isSearchWanted.value = !search;
      if (!search) go(to(['tasks']));
    } else if (key === 'j') move(1);
    else if (key === 'k') move(-1);
    else if (key === 'x') /** @type {HTMLElement | null | undefined} */ (target.closest?.('tr[data-row]')?.querySelector('[data-select]'))?.click();
    else if (key === '.') /** @type {HTMLElement | null} */ (document.querySelector('.actions button'))?.focus();
    else if (key === 'r') /** @type {HTMLElement | null} */ (document.querySelector('[data-retry] button, button[data-retry]'))?.click();
    else if (key === '?') isHelpOpen.value = true;
    isGoing = key === 'g';
  });
}

export function Help() {
  return isHelpOpen.value && html`<${Keys} />`;
}

function Keys() {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => {
    isHelpOpen.value = false;
  };
  const rows = [
    ['/', 'find a task by its number, or filter tasks'],
    ['j, k', 'next and previous row'],
    ['Enter', 'open the row'],
    ['x', 'select the row'],
    ['r', 'retry what is shown or selected'],
    ['.', 'go to the actions'],
    ...Object.entries(PLACES).map(([key, [, name]]) => [`g ${key}`, name]),
  ];
  return html`<dialog ref=${dialog} onClose=${close} class="sheet" aria-labelledby="keys-title">
    <h2 id="keys-title">Keys</h2>
    <dl class="facts">${rows.map(([key, text]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <div class="buttons"><button onClick=${close}>Close</button></div>
  </dialog>`;
}
