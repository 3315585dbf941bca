// Tasks: a filter in the address, and actions on what is selected or on all that the filter selects.

import { html, signal, useEffect, useState } from '../lib/html.js';
import { may } from '../lib/api.js';
import { actOnSelected, actOnTasks, cancelTask, options, retryTask } from '../lib/actions.js';
import { filterLine, forgetFilter, keepFilter, keptFilters, unquote } from '../lib/filters.js';
import { counted } from '../lib/format.js';
import { connection } from '../lib/live.js';
import { usePages } from '../lib/pages.js';
import { Action, Ago, Empty, Failed, Head, Loading, Name, State, Table, TaskLink } from '../lib/parts.js';
import { go, route, to } from '../lib/route.js';

/** The conditions of a filter, as the API and the command line name them. */
const CONDITIONS = ['state', 'kind', 'queue', 'group', 'tag', 'key', 'parent', 'since', 'until'];

const STATES = ['waiting', 'running', 'scheduled', 'blocked', 'completed', 'failed', 'dead', 'cancelled', 'expired'];

/** The largest number of tasks that are acted on one by one. */
const SELECTED = 500;

/** The tasks that are selected on the list, by their numbers. */
const selected = signal(/** @type {Map<string, any>} */ (new Map()));

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
  for (const word of text.match(/[a-z]+:"(?:[^"\\]|\\.)*"|\S+/gs) ?? []) {
    const [, name, value = ''] = word.match(/^([a-z]+)[:=](.*)$/s) ?? [];
    if (name && CONDITIONS.includes(name)) filter[name] = unquote(value);
    else if (STATES.includes(word)) filter.state = word;
    else filter.kind = word;
  }
  return filter;
}

export function Tasks() {
  const query = route.value.query;
  const filter = filterOf(query);
  const path = `v1/tasks?${new URLSearchParams(filter)}`;
  useEffect(() => () => {
    selected.value = new Map();
  }, [path]);
  return html`<${Head} title="Tasks" sub="The newest first." actions=${html`<${Bulk} filter=${filter} />`} />
    <${FilterBar} filter=${filter} />
    <${List} key=${`${path} ${query.cursor ?? ''}`} path=${path} filter=${filter} cursor=${query.cursor} />`;
}

/** @param {{ filter: Record<string, string> }} props */
function Bulk({ filter }) {
  const tasks = [...selected.value.values()];
  if (tasks.length > 0) {
    return html`<span data-retry><${Action} onClick=${() => actOnSelected('retry', tasks)}>Retry ${tasks.length} selected…<//></span>
      <${Action} onClick=${() => actOnSelected('cancel', tasks)}>Cancel ${tasks.length} selected…<//>
      <${Action} onClick=${() => (selected.value = new Map())}>Select none<//>`;
  }
  if (Object.keys(filter).length === 0) return may('operator') ? html`<span class="quiet">Filter, or select rows, to act on many tasks at once.</span>` : null;
  return html`<${Action} onClick=${() => actOnTasks('retry', filter)}>Retry all…<//>
    <${Action} onClick=${() => actOnTasks('cancel', filter)}>Cancel all…<//>
    <${Action} tone="danger" onClick=${() => actOnTasks('delete', filter)}>Delete all…<//>`;
}

/** @param {any} task @param {boolean} isSelected */
function select(task, isSelected) {
  const next = new Map(selected.value);
  if (isSelected && next.size < SELECTED) next.set(task.id, task);
  else next.delete(task.id);
  selected.value = next;
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
    </div>
    <${Kept} filter=${filter} />`;
}

/**
 * The filters that this browser keeps.
 * @param {{ filter: Record<string, string> }} props
 */
function Kept({ filter }) {
  const line = filterLine(filter);
  const isKept = keptFilters.value.includes(line);
  if (keptFilters.value.length === 0 && !line) return null;
  return html`<div class="chips" role="group" aria-label="Saved filters">
    ${keptFilters.value.map((kept) => html`<a key=${kept} class="chip" aria-current=${kept === line ? 'true' : undefined} href=${to(['tasks'], parse(kept))}>★ <bdi class="name">${kept}</bdi></a>`)}
    ${line && !isKept && html`<button class="link" onClick=${() => keepFilter(line)}>save this filter</button>`}
    ${isKept && html`<button class="link" onClick=${() => forgetFilter(line)}>forget this filter</button>`}
  </div>`;
}

/** @param {{ path: string, filter: Record<string, string>, cursor?: string }} props */
function List({ path, filter, cursor }) {
  const { pages, root, reload } = usePages(path, cursor);
  if (!pages.isRead) return pages.error ? html`<${Failed} problem=${pages.error} retry=${reload} />` : html`<${Loading} />`;
  const isEmpty = pages.pages.length === 1 && pages.pages[0]?.items?.length === 0;
  const total = pages.total;
  return html`<div ref=${root}>
    ${pages.error && connection.value !== 'lost' && html`<${Failed} problem=${pages.error} retry=${reload} />`}
    ${isEmpty ? html`<${None} filter=${filter} />` : html`<${TaskTable} parts=${pages.parts()} canSelect=${may('operator')} />`}
    <nav class="pages quiet" aria-label="Pages">
      ${cursor && html`<a href=${to(['tasks'], filter)}>newest</a>`}
      ${!isEmpty && total !== undefined && html`<span>${counted(total, 'task')}${cursor ? ' from here on' : ''}, and no older ones.</span>`}
    </nav>
  </div>`;
}

/** @param {{ filter: Record<string, string> }} props */
function None({ filter }) {
  const isFiltered = Object.keys(filter).length > 0;
  return isFiltered
    ? html`<${Empty} title="No task meets the filter. The same on the command line:" command=${['onward task list', ...options(filter)].join(' ')} />`
    : html`<${Empty} title="There are no tasks. Submit one:" command=${`onward submit --kind hello '{"name": "Ada"}'`} />`;
}

/**
 * Tasks: all, or parts of a long list.
 * @param {{ tasks?: any[], parts?: { key: string, number?: number, items?: any[], height: number }[], canSelect?: boolean }} props
 */
export function TaskTable({ tasks, parts = [{ key: 'all', items: tasks, height: 0 }], canSelect = false }) {
  const row = (/** @type {any} */ task) => ({ key: task.id, cells: cells(task, canSelect), chosen: canSelect && selected.value.has(task.id) });
  return html`<${Table}
    label="Tasks"
    columns=${[{ title: 'task' }, { title: 'state' }, { title: 'kind' }, { title: 'queue' }, { title: 'submitted' }, { title: 'attempts', class: 'number' }, { title: 'last error', class: 'wide' }, { title: 'actions', hidden: true, class: 'act' }]}
    bodies=${parts.map(({ items, ...part }) => ({ ...part, rows: items?.map(row) }))}
  />`;
}

const ENDED = ['completed', 'failed', 'dead', 'cancelled', 'expired'];

/** @param {any} task @param {boolean} canSelect */
function cells(task, canSelect) {
  const isEnded = ENDED.includes(task.state);
  const box = html`<input type="checkbox" data-select aria-label=${`Select task ${task.id}`} checked=${selected.value.has(task.id)} onChange=${(/** @type {any} */ event) => select(task, event.target.checked)} />`;
  return [
    html`${canSelect && box}<${TaskLink} id=${task.id} />`,
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
