// Parts that all screens share.

import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js';
import { may } from './api.js';
import { connection, now } from './live.js';
import { count, exact, relative } from './format.js';
import { to } from './route.js';

/** The shape and the colour of each state; the word is always beside them. */
const STATES = /** @type {Record<string, [string, string]>} */ ({
  blocked: ['○', 'quiet'],
  pending: ['○', 'quiet'],
  scheduled: ['◷', 'wait'],
  waiting: ['◷', 'wait'],
  paused: ['‖', 'warn'],
  held: ['‖', 'warn'],
  running: ['◐', 'run'],
  open: ['◐', 'run'],
  stopping: ['◐', 'warn'],
  undoing: ['↺', 'warn'],
  completed: ['✔', 'good'],
  failed: ['✕', 'bad'],
  dead: ['☠', 'bad'],
  expired: ['⊖', 'bad'],
  cancelled: ['⊘', 'quiet'],
  skipped: ['┄', 'quiet'],
  unreached: ['┄', 'quiet'],
});

/** @param {string} state */
export function shape(state) {
  return STATES[state] ?? ['·', 'quiet'];
}

/** @param {{ state: string }} props */
export function State({ state }) {
  const [mark, tone] = shape(state);
  return html`<span class=${`state ${tone}`}><span class="mark" aria-hidden="true">${mark}</span>${state}</span>`;
}

/** @param {{ at?: string | null }} props */
export function Ago({ at }) {
  if (!at) return html`<span class="quiet">–</span>`;
  return html`<time datetime=${at} title=${exact(at)}>${relative(at, now.value)}</time>`;
}

/** @param {{ number: number, tone?: string, href?: string }} props */
export function Count({ number, tone = '', href }) {
  if (number === 0) return html`<span class="quiet">0</span>`;
  return href ? html`<a class=${tone} href=${href}>${count(number)}</a>` : html`<span class=${tone}>${count(number)}</span>`;
}

/**
 * A long text is cut, and shown in whole on demand.
 * @param {{ text: string, limit?: number }} props
 */
export function Text({ text, limit = 2000 }) {
  const [isWhole, setWhole] = useState(false);
  if (text.length <= limit || isWhole) return html`<bdi class="text">${text}</bdi>`;
  return html`<bdi class="text">${text.slice(0, limit)}…</bdi>
    <button class="link" onClick=${() => setWhole(true)}>show all ${count(text.length)} characters</button>`;
}

/**
 * A name may be long and may be written from right to left; it is cut by its column and isolated.
 * @param {{ text: string, href?: string }} props
 */
export function Name({ text, href }) {
  const name = html`<bdi class="name" title=${text.length > 24 ? text.slice(0, 500) : undefined}>${text.slice(0, 200)}</bdi>`;
  return href ? html`<a href=${href}>${name}</a>` : name;
}

/** @param {{ id: string }} props */
export function TaskLink({ id }) {
  return html`<a href=${to(['tasks', id])}>${id}</a>`;
}

/**
 * @typedef {{ title: string, class?: string, hidden?: boolean }} Column
 */

/**
 * @typedef {{ key: string, cells: unknown[], chosen?: boolean }} Row
 * @typedef {{ key: string, number?: number, rows?: Row[], height?: number }} Body rows, or the space of rows that are not shown
 */

/**
 * A table that becomes cards on a phone. Its rows may be in parts, some of which are only space.
 * @param {{ label: string, columns: Column[], rows?: Row[], bodies?: Body[] }} props
 */
export function Table({ label, columns, rows, bodies = [{ key: 'all', rows }] }) {
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0">
    <table>
      <thead>
        <tr>
          ${columns.map((column) => html`<th scope="col" class=${column.class}>${column.hidden ? html`<span class="unseen">${column.title}</span>` : column.title}</th>`)}
        </tr>
      </thead>
      ${bodies.map(
        (body) => html`<tbody key=${body.key} data-page=${body.number}>
          ${body.rows?.map(
            (row) => html`<tr key=${row.key} data-row class=${row.chosen ? 'chosen' : ''}>
              ${row.cells.map((cell, place) => html`<td class=${columns[place]?.class} data-title=${columns[place]?.title}>${cell}</td>`)}
            </tr>`,
          )}
          ${!body.rows && body.height ? html`<tr class="space" aria-hidden="true" style=${{ height: `${body.height}px` }}><td colspan=${columns.length}></td></tr>` : null}
        </tbody>`,
      )}
    </table>
  </div>`;
}

/**
 * The state without anything: a sentence, and the command that fills it.
 * @param {{ title: string, command?: string, children?: unknown }} props
 */
export function Empty({ title, command, children }) {
  return html`<div class="empty"><p>${title}</p>${children}${command && html`<${Command} text=${command} />`}</div>`;
}

/** @param {{ text: string }} props */
export function Command({ text }) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  }
  return html`<div class="command">
    <code tabindex="0">${text}</code>
    <button class="small" onClick=${copy} title="Copy it">${isCopied ? 'copied' : 'copy'}</button>
  </div>`;
}

/** @param {{ problem: import('./api.js').Problem, retry?: () => void }} props */
export function Failed({ problem, retry }) {
  return html`<div class="failed" role="alert">
    <p><b>${problem.message}</b></p>
    <p>${problem.remedy}${problem.requestId && html` <span class="quiet">Request ${problem.requestId}.</span>`}</p>
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

/** Lines that hold the place of what loads. They appear only if it takes long enough to be noticed. */
export function Loading() {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class=${`loading ${isSlow ? 'slow' : ''}`} role="status">
    <span class="unseen">loading</span><i></i><i></i><i></i><i></i>
  </div>`;
}

/**
 * Shows what was loaded. Old data stay while new ones cannot be read, with the reason above them.
 * @template T
 * @param {{ loaded: import('./live.js').Loaded<T> & { reload: () => void }, children: (data: T) => unknown }} props
 */
export function Shown({ loaded, children }) {
  const { data, error, reload } = loaded;
  if (data === undefined) return error ? html`<${Failed} problem=${error} retry=${reload} />` : html`<${Loading} />`;
  // While the connection is lost the head of the page says so already.
  return html`${error && connection.value !== 'lost' && html`<${Failed} problem=${error} retry=${reload} />`}${children(data)}`;
}

/**
 * @param {{ title: unknown, sub?: unknown, actions?: unknown }} props
 */
export function Head({ title, sub, actions }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    // The row that led here has gone with the focus, and the heading comes after the data.
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, []);
  return html`<header class="head">
    <h1 ref=${heading} tabindex="-1">${title}</h1>
    ${sub && html`<p class="sub">${sub}</p>`}
    ${actions && html`<div class="actions">${actions}</div>`}
  </header>`;
}

/**
 * Parts of a screen of which one is shown. Arrows move between them.
 * @param {{ label: string, tabs: [string, string][], chosen: string, choose: (tab: string) => void, children?: unknown }} props
 */
export function Tabs({ label, tabs, chosen, choose, children }) {
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = (tabs.findIndex(([tab]) => tab === chosen) + step + tabs.length) % tabs.length;
    choose(tabs[place]?.[0] ?? chosen);
    /** @type {HTMLElement | undefined} */ (/** @type {HTMLElement} */ (event.currentTarget).querySelectorAll('button')[place])?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>${tabs.map(([tab, title]) => html`<button key=${tab} role="tab" id=${`tab-${tab}`} aria-controls="tab-panel" aria-selected=${tab === chosen ? 'true' : 'false'} tabindex=${tab === chosen ? 0 : -1} onClick=${() => choose(tab)}>${title}</button>`)}</div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${chosen}`}>${children}</div>`;
}

/**
 * A button of an action. A user without the role does not see it.
 * @param {{ role?: string, onClick: () => void, children?: unknown, tone?: string, small?: boolean, label?: string }} props
 */
export function Action({ role = 'operator', onClick, children, tone = '', small = false, label }) {
  if (!may(role)) return null;
  return html`<button class=${`${tone} ${small ? 'small' : ''}`} aria-label=${label} onClick=${onClick}>${children}</button>`;
}

/**
 * A list of names and values.
 * @param {{ items: [string, unknown][] }} props
 */
export function Facts({ items }) {
  const shown = items.filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/**
 * A line of the last values, drawn without axes; its words are in the label.
 * @param {{ values: number[], label: string, tone?: string }} props
 */
export function Spark({ values, label, tone = 'run' }) {
  const largest = Math.max(...values, 1e-9);
  const points = values.map((value, place) => `${((place / Math.max(values.length - 1, 1)) * 100).toFixed(1)},${(23 - (value / largest) * 21).toFixed(1)}`);
  return html`<svg class=${`spark ${tone}`} viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label}>
    <polyline points=${points.join(' ')} vector-effect="non-scaling-stroke" />
  </svg>`;
}
