// Schedules: what fires next, and what did not.

import { html } from '../lib/html.js';
import { segment } from '../lib/api.js';
import { quote } from '../lib/format.js';
import { usePath } from '../lib/live.js';
import { Action, Ago, Count, Empty, Head, Name, Shown, Table, TaskLink, Text } from '../lib/parts.js';
import { to } from '../lib/route.js';
import { ask } from '../lib/sheet.js';

export function Schedules() {
  const loaded = usePath('v1/schedules');
  return html`<${Head} title="Schedules" sub="The next firing first." />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) => page.items.length === 0 ? html`<${Empty} title="There are no schedules. Set one:" command="onward schedule set nightly --cron '0 2 * * *' --kind backup" />` : html`<${List} items=${page.items} />`}<//>`;
}

/** @param {{ items: any[] }} props */
function List({ items }) {
  const due = (/** @type {any} */ item) => (item.next_at && !item.paused ? Date.parse(item.next_at) : Infinity);
  const sorted = [...items].sort((one, other) => due(one) - due(other));
  return html`<${Table}
      label="Schedules"
      columns=${[{ title: 'schedule' }, { title: 'state' }, { title: 'fires' }, { title: 'next' }, { title: 'kind' }, { title: 'fired', class: 'number' }, { title: 'missed', class: 'number' }, { title: 'failed', class: 'number' }, { title: 'last task' }, { title: 'actions', hidden: true, class: 'act' }]}
      rows=${sorted.slice(0, 500).map((item) => ({ key: item.name, cells: cells(item) }))}
    />${items.length > 500 && html`<p class="quiet">The next 500 of ${items.length}.</p>`}
    ${sorted.filter((item) => item.error).slice(0, 20).map((item) => html`<p class="bad" key=${item.name}><bdi class="name">${item.name}</bdi>: <${Text} text=${item.error} limit=${300} /></p>`)}`;
}

/** @param {any} item */
function cells(item) {
  return [
    html`<${Name} text=${item.name} />`,
    item.paused ? html`<span class="state warn"><span class="mark" aria-hidden="true">‖</span>paused</span>` : html`<span class="quiet">${item.next_at ? 'on' : 'over'}</span>`,
    item.cron ? html`<code>${item.cron.slice(0, 60)}</code> <span class="quiet">${item.zone}</span>` : `every ${item.every}`,
    item.paused ? html`<span class="quiet">–</span>` : html`<${Ago} at=${item.next_at} />`,
    html`<${Name} text=${item.kind} href=${to(['tasks'], { kind: item.kind })} />`,
    html`<${Count} number=${item.fired} />`,
    html`<${Count} number=${item.missed} tone="warn" />`,
    html`<${Count} number=${item.failed} tone="bad" />`,
    item.last_task ? html`<${TaskLink} id=${item.last_task} />` : html`<span class="quiet">–</span>`,
    html`<${Action} small label=${`${item.paused ? 'Resume' : 'Pause'} ${item.name}`} onClick=${() => hold(item)}>${item.paused ? 'Resume…' : 'Pause…'}<//>
      <${Action} small label=${`Fire ${item.name} now`} onClick=${() => fire(item)}>Fire…<//>`,
  ];
}

/** @param {any} item */
function hold({ name, paused }) {
  const verb = paused ? 'resume' : 'pause';
  ask({
    title: `${paused ? 'Resume' : 'Pause'} schedule ${name.slice(0, 100)}`,
    what: paused ? 'The schedule fires again. Firings that were missed are treated as its `catch_up` says.' : 'The schedule does not fire until it is resumed.',
    verb: paused ? 'Resume' : 'Pause',
    command: () => `onward schedule ${verb} ${quote(name)}`,
    request: () => ({ method: 'POST', path: `v1/schedules/${segment(name)}/${verb}` }),
  });
}

/** @param {any} item */
function fire({ name, kind }) {
  ask({
    title: `Fire schedule ${name.slice(0, 100)} now`,
    what: `One ${kind.slice(0, 100)} task is submitted now. The firings of the schedule stay as they are.`,
    verb: 'Fire',
    command: () => `onward schedule trigger ${quote(name)}`,
    request: () => ({ method: 'POST', path: `v1/schedules/${segment(name)}/fire`, body: {} }),
  });
}
