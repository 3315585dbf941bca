// Dead letters: what fails for the same reason is one row.

import { html } from '../lib/html.js';
import { get } from '../lib/api.js';
import { actOnTasks } from '../lib/actions.js';
import { counted } from '../lib/format.js';
import { useLoaded } from '../lib/live.js';
import { Action, Ago, Count, Empty, Head, Name, Shown, Table, TaskLink, Text } from '../lib/parts.js';
import { to } from '../lib/route.js';

/** The number of dead letters that are grouped. */
const READ = 1000;

/**
 * Returns the cause in an error: the first line, without the numbers that differ from task to task.
 * @param {string} error
 */
export function cause(error) {
  const line = error.split('\n', 1)[0] ?? '';
  return line.slice(0, 300).replace(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, '…').replace(/\d+/g, (digits) => (digits.length > 3 ? '…' : digits));
}

/** @param {AbortSignal} signal */
async function load(signal) {
  const page = await get(`v1/tasks?state=dead&limit=${READ}`, signal);
  const groups = new Map();
  for (const task of page.items) {
    const key = `${task.kind}\n${cause(task.error ?? '')}`;
    const group = groups.get(key) ?? { key, kind: task.kind, cause: cause(task.error ?? 'no error was recorded'), newest: task, oldest: task, count: 0 };
    group.count += 1;
    group.oldest = task;
    groups.set(key, group);
  }
  const sorted = [...groups.values()].sort((one, other) => other.count - one.count);
  return { groups: sorted, read: page.items.length, isCut: page.next !== null };
}

export function Dead() {
  const loaded = useLoaded('dead', load);
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Groups} data=${data} />`}<//>`;
}

/** @param {{ data: any }} props */
function Groups({ data }) {
  const { groups, read, isCut } = data;
  if (groups.length === 0) return html`<${Head} title="Dead letters" /><${Empty} title="There are no dead letters. A task that failed after all its retries comes here." command="onward task list --state dead" />`;
  const actions = html`<${Action} onClick=${() => actOnTasks('retry', { state: 'dead' })}>Retry all…<//><${Action} tone="danger" onClick=${() => actOnTasks('delete', { state: 'dead' })}>Delete all…<//>`;
  return html`<${Head} title="Dead letters" sub=${`${counted(groups.length, 'cause')} of ${isCut ? `the newest ${counted(read, 'task')}` : counted(read, 'task')}.`} actions=${actions} />
    <${Table}
      label="Causes"
      columns=${[{ title: 'tasks', class: 'number' }, { title: 'cause', class: 'wide' }, { title: 'kind' }, { title: 'newest' }, { title: 'first' }, { title: 'sample' }, { title: 'actions', hidden: true, class: 'act' }]}
      rows=${groups.slice(0, 200).map((/** @type {any} */ group) => ({ key: group.key, cells: cells(group) }))}
    />${groups.length > 200 && html`<p class="quiet">The 200 most frequent causes.</p>`}
    <p class="quiet">Causes are told apart by kind and by the first line of the error, without long numbers. Actions on a row apply to all dead letters of its kind.</p>`;
}

/** @param {any} group */
function cells(group) {
  const filter = { kind: group.kind, state: 'dead' };
  return [
    html`<${Count} number=${group.count} tone="bad" />`,
    html`<${Text} text=${group.cause} limit=${200} />`,
    html`<${Name} text=${group.kind} href=${to(['tasks'], filter)} />`,
    html`<${Ago} at=${group.newest.finished_at} />`,
    html`<${Ago} at=${group.oldest.finished_at} />`,
    html`<${TaskLink} id=${group.newest.id} />`,
    html`<${Action} small label=${`Retry the dead letters of ${group.kind}`} onClick=${() => actOnTasks('retry', filter)}>Retry kind…<//>`,
  ];
}
