// Workflows: the stored templates and their runs.

import { html } from '../lib/html.js';
import { segment } from '../lib/api.js';
import { quote } from '../lib/format.js';
import { usePath } from '../lib/live.js';
import { Action, Ago, Empty, Head, Name, Shown, State, Table, Text } from '../lib/parts.js';
import { route, to } from '../lib/route.js';
import { ask, json } from '../lib/sheet.js';

const STATES = ['running', 'waiting', 'blocked', 'completed', 'failed', 'dead', 'cancelled'];

export function Workflows() {
  const templates = usePath('v1/templates?limit=200');
  return html`<${Head} title="Workflows" sub="Runs of stored templates, the newest first." />
    <${Runs} workflow=${undefined} />
    <h2>Templates</h2>
    <${Shown} loaded=${templates}>${(/** @type {any} */ page) =>
      page.items.length === 0
        ? html`<${Empty} title="No template is stored. Store one:" command="onward workflow put order.yaml" />`
        : html`<${Templates} items=${page.items} isCut=${page.next !== null} />`}<//>`;
}

/** @param {{ items: any[], isCut: boolean }} props */
function Templates({ items, isCut }) {
  const newest = items.filter((item) => item.is_newest);
  return html`<${Table}
      label="Templates"
      columns=${[{ title: 'template' }, { title: 'version' }, { title: 'stored' }, { title: 'actions', hidden: true, class: 'act' }]}
      rows=${newest.map((item) => ({
        key: `${item.name}@${item.label}`,
        cells: [
          html`<${Name} text=${item.name} href=${to(['workflows', item.name])} />`,
          html`<bdi class="name">${item.label}</bdi>`,
          html`<${Ago} at=${item.stored_at} />`,
          html`<${Action} small label=${`Start ${item.name}`} onClick=${() => startRun(item.name)}>Start…<//>`,
        ],
      }))}
    />${isCut && html`<p class="quiet">The first 200 versions; <code>onward workflow list</code> shows all.</p>`}`;
}

/** @param {string} name */
function startRun(name) {
  ask({
    title: `Start a run of ${name.slice(0, 100)}`,
    what: 'The input is checked against the schema of the template.',
    verb: 'Start',
    fields: [
      { name: 'input', label: 'Input', type: 'json', value: '{}', hint: 'JSON' },
      { name: 'key', label: 'Key', hint: 'optional: makes the run unique among the active ones' },
    ],
    command: ({ input, key }) => `onward workflow start ${quote(name)} --input ${quote(input ?? '')}${key ? ` --key ${quote(key)}` : ''}`,
    request: ({ input, key }) => ({
      method: 'POST',
      path: `v1/templates/${segment(name)}/runs`,
      body: { input: json('The input', input ?? ''), ...(key ? { key } : {}) },
    }),
    done: ({ id }) => {
      location.hash = to(['runs', id]);
      return `run ${id} is started`;
    },
  });
}

/** @param {{ workflow?: string }} props */
function Runs({ workflow }) {
  const { state = '', cursor } = route.value.query;
  const query = new URLSearchParams({ limit: '50', ...(workflow ? { workflow } : {}), ...(state ? { state } : {}), ...(cursor ? { cursor } : {}) });
  const loaded = usePath(`v1/runs?${query}`);
  const here = (/** @type {Record<string, string | undefined>} */ query) => to(workflow ? ['workflows', workflow] : ['workflows'], query);
  return html`<div class="chips" role="group" aria-label="States">${STATES.map((one) => html`<a key=${one} class="chip" aria-current=${state === one ? 'true' : undefined} href=${here({ state: state === one ? undefined : one })}><${State} state=${one} /></a>`)}</div>
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) =>
      html`${page.items.length === 0
          ? html`<${Empty} title=${page.next ? 'There is no run on this page.' : 'There are no such runs. Start one:'} command=${`onward workflow start ${workflow ? quote(workflow) : 'NAME'}`} />`
          : html`<${RunTable} runs=${page.items} />`}
        <nav class="pages" aria-label="Pages">${cursor && html`<a href=${here({ state })}>newest</a>`}${page.next && html`<a href=${here({ state, cursor: page.next })}>older</a>`}</nav>`}<//>`;
}

/** @param {{ runs: any[] }} props */
function RunTable({ runs }) {
  return html`<${Table}
    label="Runs"
    columns=${[{ title: 'run' }, { title: 'state' }, { title: 'workflow' }, { title: 'key' }, { title: 'started' }, { title: 'ended' }, { title: 'last error', class: 'wide' }]}
    rows=${runs.map((run) => {
      const name = run.kind.replace(/^run:/, '');
      return {
        key: run.id,
        cells: [
          html`<a href=${to(['runs', run.id])}>${run.id}</a>`,
          html`<${State} state=${run.state} />`,
          html`<${Name} text=${name} href=${to(['workflows', name])} />`,
          run.key ? html`<bdi class="name">${run.key.slice(0, 100)}</bdi>` : html`<span class="quiet">–</span>`,
          html`<${Ago} at=${run.submitted_at} />`,
          html`<${Ago} at=${run.finished_at} />`,
          run.error ? html`<bdi class="name bad">${run.error.slice(0, 160)}</bdi>` : '',
        ],
      };
    })}
  />`;
}

/** @param {{ id: string }} props */
export function Workflow({ id }) {
  const loaded = usePath(`v1/templates/${segment(id)}`);
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ stored) => html`<${Head}
        title=${html`Workflow <bdi class="name">${stored.template.name}</bdi>`}
        sub=${html`Version <bdi>${stored.template.label}</bdi>, stored <${Ago} at=${stored.template.stored_at} />`}
        actions=${html`<${Action} tone="primary" onClick=${() => startRun(stored.template.name)}>Start…<//>`}
      />
      <h2>Runs</h2>
      <${Runs} workflow=${stored.template.name} />
      <details><summary>Content of the template</summary><pre class="content" tabindex="0"><${Text} text=${JSON.stringify(stored.content, null, 2)} limit=${20000} /></pre></details>`}<//>`;
}

