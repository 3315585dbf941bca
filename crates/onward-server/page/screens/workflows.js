// Workflows: the stored templates and their runs.

import { html, useState } from '../lib/html.js';
import { change, get, getContent, segment } from '../lib/api.js';
import { counted, quote } from '../lib/format.js';
import { useLoaded, usePath } from '../lib/live.js';
import { Action, Ago, Empty, Head, Name, Shown, State, Table, Text } from '../lib/parts.js';
import { route, to } from '../lib/route.js';
import { form, shown } from '../lib/schema.js';
import { ask, notice } from '../lib/sheet.js';

const STATES = ['running', 'waiting', 'blocked', 'completed', 'failed', 'dead', 'cancelled'];

export function Workflows() {
  const templates = usePath('v1/templates?limit=200');
  return html`<${Head} title="Workflows" sub="Runs of stored templates, the newest first." actions=${html`<${Action} role="developer" onClick=${() => storeTemplate()}>Store a template…<//>`} />
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
          html`<${Action} small label=${`Start ${item.name}`} onClick=${() => startNewest(item.name)}>Start…<//>`,
        ],
      }))}
    />${isCut && html`<p class="quiet">The first 200 versions; <code>onward workflow list</code> shows all.</p>`}`;
}

/**
 * Starts a run, with a form from the schema of the template's input.
 * @param {any} stored
 */
function startRun({ template, content }) {
  const { name } = template;
  const input = form(content.input_schema, { label: 'Input', value: '{}' });
  ask({
    title: `Start a run of ${name.slice(0, 100)}`,
    what: html`Version <bdi>${template.label}</bdi>. The input is checked against the schema of the template.`,
    verb: 'Start',
    fields: [...input.fields, ...(content.key ? [] : [{ name: 'key', label: 'Key', hint: 'optional: makes the run unique' }])],
    command: (values) => `onward workflow start ${quote(name)} --input ${quote(shown(input, values))}${values.key ? ` --key ${quote(values.key)}` : ''}`,
    request: (values) => ({ method: 'POST', path: `v1/templates/${segment(name)}/runs`, body: { input: input.value(values), ...(values.key ? { key: values.key } : {}) } }),
    done: ({ id }) => {
      location.hash = to(['runs', id]);
      return `run ${id} is started`;
    },
  });
}

/** @param {string} name */
async function startNewest(name) {
  try {
    startRun(await get(`v1/templates/${segment(name)}`));
  } catch (error) {
    notice.value = /** @type {Error} */ (error).message;
  }
}

/**
 * Returns the name that a template gives itself, in YAML or in JSON.
 * @param {string} text
 */
function nameOf(text) {
  const [, double, single, plain] = text.match(/^(?:name| {0,2}"name"):[ \t]*(?:"([^"]*)"|'([^']*)'|([^#\n]*))/m) ?? [];
  return (double ?? single ?? plain ?? '').trim();
}

const EXAMPLE = `name: shop/order
version: "1"
steps:
  reserve: {task: stock.reserve}
  ship: {task: parcels.ship, depends_on: [reserve]}
`;

/** @param {string} [yaml] */
function storeTemplate(yaml = EXAMPLE) {
  ask({
    title: 'Store a template',
    what: 'It becomes the newest version of its name, with the label that it gives as its version. Runs that have started keep theirs.',
    verb: 'Store',
    fields: [{ name: 'template', label: 'Template', type: 'file', value: yaml, hint: 'YAML; it is checked while you type' }],
    check: async ({ template }) => {
      const { errors } = await change({ method: 'POST', path: 'v1/templates:check', yaml: template });
      return errors.map((/** @type {any} */ error) => `line ${error.line}: ${error.message}`);
    },
    command: () => 'onward workflow put template.yaml',
    request: ({ template = '' }) => {
      if (!nameOf(template)) throw new Error('The template has no line with its name, such as name: shop/order');
      return { method: 'PUT', path: `v1/templates/${segment(nameOf(template))}`, yaml: template };
    },
    done: ({ template }) => {
      location.hash = to(['workflows', template.name]);
      return `${template.name} ${template.label} is stored`;
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

/**
 * A template with the versions of its name.
 * @param {string} id
 * @param {AbortSignal} signal
 */
async function load(id, signal) {
  const [stored, all] = await Promise.all([get(`v1/templates/${segment(id)}`, signal), get('v1/templates?limit=1000', signal)]);
  const versions = all.items.filter((/** @type {any} */ item) => item.name === stored.template.name && item.label !== stored.template.label);
  return { stored, versions };
}

/** @param {{ id: string }} props */
export function Workflow({ id }) {
  const loaded = useLoaded(id, (signal) => load(id, signal));
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Details} ...${data} />`}<//>`;
}

/** @param {{ stored: any, versions: any[] }} props */
function Details({ stored, versions }) {
  const { template, content } = stored;
  const steps = Object.entries(content.steps ?? {});
  return html`<${Head}
      title=${html`Workflow <bdi class="name">${template.name}</bdi>`}
      sub=${html`Version <bdi>${template.label}</bdi>, stored <${Ago} at=${template.stored_at} />, with ${counted(steps.length, 'step')}`}
      actions=${html`<${Action} tone="primary" onClick=${() => startRun(stored)}>Start…<//><${Action} role="developer" onClick=${() => storeTemplate(JSON.stringify(content, null, 2))}>Edit…<//>`}
    />
    <h2>Runs</h2>
    <${Runs} workflow=${template.name} />
    ${versions.length > 0 && html`<h2>Other versions</h2><ul>${versions.slice(0, 50).map((version) => html`<li key=${version.label}><${Version} name=${template.name} label=${version.label} at=${version.stored_at} to=${template.label} /></li>`)}</ul>`}
    <details><summary>Content of the template</summary><pre class="content" tabindex="0"><${Text} text=${JSON.stringify(content, null, 2)} limit=${20000} /></pre></details>`;
}

/** @param {{ name: string, label: string, at: string, to: string }} props */
function Version({ name, label, at, to: newest }) {
  const [difference, setDifference] = useState(/** @type {string | null} */ (null));
  async function compare() {
    const { text } = await getContent(`v1/templates/${segment(`${name}@${newest}`)}/diff?with=${segment(label)}`).catch((error) => ({ text: error.message }));
    setDifference(text);
  }
  return html`<bdi class="name">${label}</bdi>, stored <${Ago} at=${at} /> <button class="link" onClick=${compare}>what has changed since</button>
    ${difference !== null && html`<pre class="content" tabindex="0"><${Text} text=${difference || 'nothing'} limit=${20000} /></pre>`}`;
}
