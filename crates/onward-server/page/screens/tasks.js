// Tasks: a filter in the address, pages, and actions on all that the filter selects.

import { html, useState } from '../lib/html.js';
import { may } from '../lib/api.js';
import { actOnTasks, cancelTask, options, retryTask } from '../lib/actions.js';
import { usePath } from '../lib/live.js';
import { Action, Ago, Empty, Head, Name, Shown, State, Table, TaskLink } from '../lib/parts.js';
import { go, route, to } from '../lib/route.js';

/** The conditions of a filter, as the API and the command line name them. */
const CONDITIONS = ['state', 'kind', 'queue', 'group', 'tag', 'key', 'parent', 'since', 'until'];

const STATES = ['waiting', 'running', 'scheduled', 'blocked', 'completed', 'failed', 'dead', 'cancelled', 'expired'];

const PAGE = 50;

/** @returns {Record<string, string>} */
function filterOf(/** @type {Record<string, string>} */ query) {
  return Object.fromEntries(Object.entries(query).filter(([name, value]) => CONDITIONS.includes(name) && value));
}

/**
 * Reads a line such as `kind:mail state:dead tag:order=7`, or the number of a task.
 * @param {string} text
 */
export function parse(text) {
  const filter = /** @type {Record<string, string>} */ ({});
  for (const word of text.match(/[a-z]+:"[^"]*"|\S+/g) ?? []) {
    const [, name, value] = word.match(/^([a-z]+)[:=](.*)$/s) ?? [];
    if (name && CONDITIONS.includes(name)) filter[name] = (value ?? '').replace(/^"(.*)"$/s, '$1');
    else if (STATES.includes(word)) filter.state = word;
    else filter.kind = word;
  }
  return filter;
}

export function Tasks() {
  const query = route.value.query;
  const filter = filterOf(query);
  const parameters = new URLSearchParams({ ...filter, limit: String(PAGE), ...(query.cursor ? { cursor: query.cursor } : {}) });
  const loaded = usePath(`v1/tasks?${parameters}`);
  return html`<${Head} title="Tasks" sub="The newest first." actions=${html`<${Bulk} filter=${filter} />`} />
    <${FilterBar} filter=${filter} />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) => html`<${List} page=${page} filter=${filter} cursor=${query.cursor} />`}<//>`;
}

/** @param {{ filter: Record<string, string> }} props */
function Bulk({ filter }) {
  if (Object.keys(filter).length === 0) return may('operator') ? html`<span class="quiet">Filter to act on many tasks at once.</span>` : null;
  return html`<${Action} onClick=${() => actOnTasks('retry', filter)}>Retry all…<//>
    <${Action} onClick=${() => actOnTasks('cancel', filter)}>Cancel all…<//>
    <${Action} tone="danger" onClick=${() => actOnTasks('delete', filter)}>Delete all…<//>`;
}

/** @param {{ filter: Record<string, string> }} props */
function FilterBar({ filter }) {
  const [text, setText] = useState('');
  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    const typed = text.trim();
    setText('');
    if (/^\d+$/.test(typed)) go(to(['tasks', typed]));
    else if (typed) go(to(['tasks'], { ...filter, ...parse(typed) }));
  }
  return html`<form class="filter" role="search" onSubmit=${submit}>
      <input data-search aria-label="Filter, or the number of a task" placeholder="a number, or kind:mail state:dead tag:order=7" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <button type="submit">Filter</button>
    </form>
    <div class="chips" role="group" aria-label="States">
      ${STATES.map((state) => html`<a key=${state} class="chip" aria-current=${filter.state === state ? 'true' : undefined} href=${to(['tasks'], { ...filter, state: filter.state === state ? undefined : state })}><${State} state=${state} /></a>`)}
    </div>
    <div class="chips">
      ${Object.entries(filter)
        .filter(([name]) => name !== 'state')
        .map(([name, value]) => html`<a key=${name} class="chip set" href=${to(['tasks'], { ...filter, [name]: undefined })} aria-label=${`Remove the condition ${name}`}>${name}: <bdi class="name">${value.slice(0, 100)}</bdi> ✕</a>`)}
    </div>`;
}

/** @param {{ page: any, filter: Record<string, string>, cursor?: string }} props */
function List({ page, filter, cursor }) {
  if (page.items.length === 0) {
    const isFiltered = Object.keys(filter).length > 0;
    return isFiltered
      ? html`<${Empty} title="No task meets the filter. The same on the command line:" command=${['onward task list', ...options(filter)].join(' ')} />`
      : html`<${Empty} title="There are no tasks. Submit one:" command=${`onward submit --kind hello '{"name": "Ada"}'`} />`;
  }
  return html`<${TaskTable} tasks=${page.items} />
    <nav class="pages" aria-label="Pages">
      ${cursor && html`<a href=${to(['tasks'], filter)}>newest</a>`}
      ${page.next && html`<a href=${to(['tasks'], { ...filter, cursor: page.next })}>older</a>`}
    </nav>`;
}

/** @param {{ tasks: any[] }} props */
export function TaskTable({ tasks }) {
  return html`<${Table}
    label="Tasks"
    columns=${[{ title: 'task' }, { title: 'state' }, { title: 'kind' }, { title: 'queue' }, { title: 'submitted' }, { title: 'attempts', class: 'number' }, { title: 'last error', class: 'wide' }, { title: 'actions', hidden: true, class: 'act' }]}
    rows=${tasks.map((task) => ({ key: task.id, cells: cells(task) }))}
  />`;
}

const ENDED = ['completed', 'failed', 'dead', 'cancelled', 'expired'];

/** @param {any} task */
function cells(task) {
  const isEnded = ENDED.includes(task.state);
  return [
    html`<${TaskLink} id=${task.id} />`,
    html`<${State} state=${task.state} />`,
    html`<${Name} text=${task.kind} href=${to(['tasks'], { kind: task.kind })} />`,
    html`<${Name} text=${task.queue} href=${to(['queues', task.queue])} />`,
    html`<${Ago} at=${task.submitted_at} />`,
    task.attempts || html`<span class="quiet">0</span>`,
    task.error ? html`<bdi class="name bad">${task.error.slice(0, 160)}</bdi>` : '',
    isEnded && task.state !== 'completed'
      ? html`<${Action} small label=${`Retry task ${task.id}`} onClick=${() => retryTask(task)}>Retry…<//>`
      : !isEnded && html`<${Action} small label=${`Cancel task ${task.id}`} onClick=${() => cancelTask(task)}>Cancel…<//>`,
  ];
}
