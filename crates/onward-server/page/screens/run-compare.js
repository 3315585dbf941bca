// Two runs of a template side by side: what differs as a whole, and step by step.

import { html, useState } from '../lib/html.js';
import { get, may, segment } from '../lib/api.js';
import { counted, precise, quote, relative } from '../lib/format.js';
import { now, usePath, useSettled } from '../lib/live.js';
import { Empty, Shown, State, Table, Text } from '../lib/parts.js';
import { to } from '../lib/route.js';

/** The number of runs to choose from. */
const RUNS = 100;

/** @param {{ run: any, other: string, choose: (id: string) => void }} props */
export function Compare({ run, other, choose }) {
  if (!may('operator')) return html`<p class="quiet">A comparison shows inputs and results, which need the role operator.</p>`;
  return html`<${Chooser} run=${run} other=${other} choose=${choose} />
    ${other && html`<${Comparison} key=${other} id=${run.id} other=${other} />`}`;
}

/** @param {{ run: any, other: string, choose: (id: string) => void }} props */
function Chooser({ run, other, choose }) {
  const loaded = usePath(`v1/runs?workflow=${segment(run.workflow)}&limit=${RUNS}`);
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ page) => {
    const runs = page.items.filter((/** @type {any} */ one) => one.id !== run.id);
    if (runs.length === 0) return html`<${Empty} title="The workflow has no other run. Start one:" command=${`onward workflow start ${quote(run.workflow)}`} />`;
    const isListed = !other || runs.some((/** @type {any} */ one) => one.id === other);
    return html`<label class="field narrow">Compare with<select value=${other} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
        <option value="">choose a run</option>
        ${!isListed && html`<option value=${other}>run ${other}</option>`}
        ${runs.map((/** @type {any} */ one) => html`<option key=${one.id} value=${one.id}>run ${one.id} · ${one.state} · ${relative(one.submitted_at, now.value)}</option>`)}
      </select>${page.next && html`<small class="hint">The newest ${RUNS} runs.</small>`}</label>`;
  }}<//>`;
}

/** @param {{ id: string, other: string }} props */
function Comparison({ id, other }) {
  const path = `v1/runs/${segment(id)}/compare?with=${segment(other)}`;
  const isFinal = (/** @type {any} */ data) => [data.one, data.other].every((run) => run.phase === 'completed');
  const loaded = useSettled(path, (signal) => get(path, signal), isFinal);
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Sides} data=${data} />`}<//>`;
}

/** @param {any} one @param {any} other */
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * Returns the parts in which a step differs.
 * @param {any} step
 */
function differences({ one, other }) {
  if (!one || !other) return ['step'];
  return ['state', 'input', 'result'].filter((part) => !isSame(one[part], other[part]));
}

/** @param {{ data: any }} props */
function Sides({ data }) {
  const { one, other, steps } = data;
  const [isAll, setAll] = useState(false);
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const differ = steps.filter((/** @type {any} */ step) => differences(step).length > 0);
  const shown = isAll ? steps : differ;
  const step = steps.find((/** @type {any} */ step) => step.name === chosen);
  const facts = ['template', 'environment', 'input', 'result'].filter((part) => !isSame(one[part], other[part]));
  return html`<p role="status">${differ.length === 0 ? 'No step differs.' : `${counted(differ.length, 'step')} of ${steps.length} ${differ.length === 1 ? 'differs' : 'differ'}.`} ${facts.length > 0 ? `The runs differ in ${facts.join(', ')}.` : ''}</p>
    <${Table} label="The runs" columns=${[{ title: 'run' }, { title: 'state' }, { title: 'took', class: 'number' }, { title: 'template' }, { title: 'input', class: 'wide' }, { title: 'result', class: 'wide' }]}
      rows=${[one, other].map((run) => ({
        key: run.id,
        cells: [html`<a href=${to(['runs', run.id])}>${run.id}</a>`, html`<${State} state=${run.phase} />`, time(run.took), html`<code>${run.template.slice(0, 12)}</code>`, value(run.input), value(run.result)],
      }))} />
    <h2>Steps</h2>
    <label class="check"><input type="checkbox" checked=${isAll} onChange=${() => setAll(!isAll)} /> also those that do not differ</label>
    ${shown.length === 0 ? html`<p class="quiet">None.</p>` : html`<${Table} label="Differences by step" columns=${[{ title: 'step' }, { title: `run ${one.id}` }, { title: `run ${other.id}` }, { title: `took in ${one.id}`, class: 'number' }, { title: `in ${other.id}`, class: 'number' }, { title: 'input' }, { title: 'result' }]}
      rows=${shown.map((/** @type {any} */ step) => ({ key: step.name, chosen: step.name === chosen, cells: cells(step, () => setChosen(step.name)) }))} />`}
    ${step && html`<${Values} step=${step} ids=${[one.id, other.id]} />`}`;
}

/** @param {any} step @param {() => void} choose */
function cells(step, choose) {
  const { one, other } = step;
  const state = (/** @type {any} */ side) => (side ? html`<${State} state=${side.state} />` : html`<span class="quiet">not in its template</span>`);
  const part = (/** @type {string} */ name) => {
    if (!one || !other || (one[name] === undefined && other[name] === undefined)) return html`<span class="quiet">–</span>`;
    return isSame(one[name], other[name]) ? html`<span class="quiet">same</span>` : html`<b class="warn">≠ differs</b>`;
  };
  return [html`<button class="link" onClick=${choose}><bdi class="name">${step.name}</bdi></button>`, state(one), state(other), time(one?.took), time(other?.took), part('input'), part('result')];
}

/** @param {number | undefined} seconds */
const time = (seconds) => (seconds === undefined ? html`<span class="quiet">–</span>` : precise(seconds * 1000));

/** @param {any} value */
const value = (value) => (value === undefined ? html`<span class="quiet">–</span>` : html`<${Text} text=${JSON.stringify(value)} limit=${120} />`);

/** @param {{ step: any, ids: string[] }} props */
function Values({ step, ids }) {
  const sides = [step.one, step.other];
  return html`<section class="panel" aria-label="The compared step"><h2><bdi class="name">${step.name}</bdi></h2>
    ${['input', 'result', 'reason'].filter((part) => sides.some((side) => side?.[part] !== undefined)).map((part) => html`<div class="columns" key=${part}>${sides.map((side, place) => html`<div key=${place}><h3>${part} in run ${ids[place]}</h3><pre class="content" tabindex="0"><${Text} text=${text(side?.[part])} limit=${20000} /></pre></div>`)}</div>`)}
  </section>`;
}

/** @param {any} value */
const text = (value) => (value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value, null, 2));
