// A run: its graph, and the step that is chosen.

import { html, useState } from '../lib/html.js';
import { get, segment } from '../lib/api.js';
import { actOnRun, holdInstance, RUN_ACTIONS, sendSignal } from '../lib/actions.js';
import { duration } from '../lib/format.js';
import { layout, NODE } from '../lib/layout.js';
import { now, useLoaded } from '../lib/live.js';
import { Action, Ago, Facts, Head, Shown, State, Table, TaskLink, Text, shape } from '../lib/parts.js';
import { to } from '../lib/route.js';
import { answer } from './inbox.js';

/** The largest graph that is drawn; above it the steps are a list. */
const DRAWN = 500;

const BAD = ['failed', 'dead', 'expired', 'cancelled'];

/**
 * Loads a run and the positions of its steps; a run without steps has no graph.
 * @param {string} id
 * @param {AbortSignal} signal
 */
async function load(id, signal) {
  const [run, graph] = await Promise.all([get(`v1/runs/${segment(id)}`, signal), get(`v1/runs/${segment(id)}/graph`, signal)]);
  return { ...run, graph };
}

/** @param {{ id: string }} props */
export function Run({ id }) {
  const loaded = useLoaded(id, (signal) => load(id, signal));
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ run) => html`<${Details} run=${run} />`}<//>`;
}

/** @param {any} run */
function sentence(run) {
  const questions = run.steps.filter((/** @type {any} */ step) => step.question);
  const bad = run.steps.filter((/** @type {any} */ step) => BAD.includes(step.state));
  if (run.paused) return 'It is paused: what arrives takes effect when it is resumed.';
  if (run.error) return run.error;
  if (questions.length > 0) return `It waits for a person: ${questions[0].question}`;
  if (bad.length > 0 && !run.is_ended) return `Step ${bad[0].name} ended badly: ${bad[0].reason ?? bad[0].state}`;
  const open = run.steps.filter((/** @type {any} */ step) => ['open', 'waiting'].includes(step.state));
  if (open.length > 0) return `Now: ${open.slice(0, 5).map((/** @type {any} */ step) => step.name).join(', ')}${open.length > 5 ? ` and ${open.length - 5} more` : ''}.`;
  return run.is_ended ? `It has ended as ${run.phase}.` : 'Its first turn has not been taken; it needs a worker with `onward work --workflows`.';
}

/** @param {{ run: any }} props */
function Details({ run }) {
  const [name, setName] = useState(/** @type {string | null} */ (null));
  const steps = run.steps;
  const first = steps.find((/** @type {any} */ step) => step.question) ?? steps.find((/** @type {any} */ step) => BAD.includes(step.state)) ?? steps.find((/** @type {any} */ step) => step.state === 'open');
  const chosen = steps.find((/** @type {any} */ step) => step.name === name) ?? first;
  const actions = html`${!run.is_ended && (run.paused ? html`<${Action} tone="primary" onClick=${() => holdInstance('runs', run.id, 'resume')}>Resume…<//>` : html`<${Action} onClick=${() => holdInstance('runs', run.id, 'pause')}>Pause…<//>`)}
    ${run.phase !== 'completed' && html`<span data-retry><${Action} onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS.retry))}>Retry…<//></span>`}
    ${!run.is_ended && html`<${Action} onClick=${() => sendSignal('runs', run.id)}>Signal…<//>`}
    ${!run.is_ended && html`<${Action} tone="danger" onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS.cancel))}>Cancel…<//>`}
    ${run.is_ended && run.phase !== 'completed' && html`<${Action} tone="danger" onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS.undo))}>Undo…<//>`}`;
  return html`<${Head}
      title=${html`Run ${run.id} <${State} state=${run.paused ? 'paused' : run.phase} />`}
      sub=${html`of <a href=${to(['workflows', run.workflow])}><bdi class="name">${run.workflow}</bdi></a> · <a href=${to(['tasks', run.id])}>its task</a>`}
      actions=${actions}
    />
    <p class="why" role="status"><${Text} text=${sentence(run)} /></p>
    ${steps.length === 0 ? html`<p class="quiet">It has no steps yet.</p>` : html`<${Steps} steps=${steps} graph=${run.graph} chosen=${chosen?.name} choose=${setName} />`}
    ${chosen && html`<${Step} run=${run} step=${chosen} />`}
    ${steps.length > 0 && html`<h2>Timeline</h2><${Gantt} steps=${steps} />`}`;
}

/** @param {{ steps: any[], graph: import('../lib/layout.js').Graph, chosen?: string, choose: (name: string) => void }} props */
function Steps({ steps, graph, chosen, choose }) {
  if (steps.length > DRAWN) return html`<p class="quiet">${steps.length} steps are too many to draw; these have ended badly, or are open.</p><${List} steps=${steps} choose=${choose} />`;
  const { places, edges, width, height } = layout(graph);
  return html`<div class="graph" role="region" aria-label="Graph of the steps" tabindex="0">
    <svg width=${width + 8} height=${height + 8} viewBox=${`-4 -4 ${width + 8} ${height + 8}`} role="group" aria-label=${`${steps.length} steps`}>
      ${edges.map((edge) => html`<path key=${edge.key} class="edge" d=${edge.path} />`)}
      ${steps.map((step) => html`<${Node} key=${step.name} step=${step} place=${places.get(step.name)} isChosen=${step.name === chosen} choose=${choose} />`)}
    </svg>
  </div>`;
}

/** @param {{ step: any, place: any, isChosen: boolean, choose: (name: string) => void }} props */
function Node({ step, place, isChosen, choose }) {
  const [mark, tone] = shape(step.undo === 'completed' ? 'undoing' : step.state);
  const name = step.name.length > 17 ? `${step.name.slice(0, 16)}…` : step.name;
  const items = step.items ? ` ${step.items.completed}/${step.items.all}` : '';
  const pick = (/** @type {any} */ event) => {
    if (event.type === 'click' || event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      choose(step.name);
    }
  };
  return html`<g class=${`node ${tone} ${isChosen ? 'chosen' : ''}`} transform=${`translate(${place.x} ${place.y})`} role="button" tabindex="0" aria-pressed=${isChosen ? 'true' : 'false'} onClick=${pick} onKeyDown=${pick}>
    ${name !== step.name && html`<title>${step.name}</title>`}
    <rect width=${NODE.width} height=${NODE.height} rx="8" />
    <text x="14" y="25" class="mark" aria-hidden="true">${mark}</text>
    <text x="34" y="18">${name}</text>
    <text x="34" y="32" class="sub">${step.state}${items}</text>
  </g>`;
}

/** @param {{ steps: any[], choose: (name: string) => void }} props */
function List({ steps, choose }) {
  const shown = steps.filter((step) => BAD.includes(step.state) || ['open', 'waiting'].includes(step.state)).slice(0, 200);
  return html`<${Table} label="Steps" columns=${[{ title: 'step' }, { title: 'state' }, { title: 'reason', class: 'wide' }]} rows=${shown.map((step) => ({
    key: step.name,
    cells: [html`<button class="link" onClick=${() => choose(step.name)}><bdi class="name">${step.name}</bdi></button>`, html`<${State} state=${step.state} />`, step.reason ?? ''],
  }))} />`;
}

/** @param {any} step */
function possible(step) {
  if (BAD.includes(step.state)) return ['retry', 'reset', 'resolve', 'complete', 'skip'];
  if (step.state === 'waiting') return ['complete', 'skip'];
  if (step.state === 'pending') return ['skip'];
  return step.state === 'completed' ? ['reset'] : [];
}

/** @param {{ run: any, step: any }} props */
function Step({ run, step }) {
  const isOver = run.phase === 'completed';
  const took = step.started_at && (step.ended_at ? Date.parse(step.ended_at) : now.value) - Date.parse(step.started_at);
  return html`<section class="panel" aria-label="The chosen step">
    <h2><bdi class="name">${step.name}</bdi> <${State} state=${step.state} /></h2>
    ${step.question && html`<p class="question"><${Text} text=${step.question} /> <${Action} tone="primary" onClick=${() => answer({ ...step, run: run.id, step: step.name })}>Answer…<//></p>`}
    ${step.reason && html`<p><${Text} text=${step.reason} /></p>`}
    <${Facts} items=${[
      ['task', step.task && html`<${TaskLink} id=${step.task} />`],
      ['attempts', step.attempts],
      ['waits for', step.signal && html`signal <bdi>${step.signal}</bdi>`],
      ['until', step.until && html`<${Ago} at=${step.until} />`],
      ['items', step.items && `${step.items.completed} completed, ${step.items.open} open, ${step.items.bad} bad, of ${step.items.all}`],
      ['undo', step.undo],
      ['started', step.started_at && html`<${Ago} at=${step.started_at} />`],
      ['took', took && duration(took)],
      ['depends on', step.depends_on.join(', ')],
    ]} />
    ${!isOver && html`<div class="actions">${possible(step).map((name) => html`<${Action} key=${name} small onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS[name]), step.name)}>${RUN_ACTIONS[name]?.label}…<//>`)}</div>`}
  </section>`;
}

/** @param {{ steps: any[] }} props */
function Gantt({ steps }) {
  const begun = steps.filter((step) => step.started_at);
  if (begun.length === 0) return html`<p class="quiet">No step has begun.</p>`;
  const start = Math.min(...begun.map((step) => Date.parse(step.started_at)));
  const end = Math.max(...begun.map((step) => (step.ended_at ? Date.parse(step.ended_at) : now.value)), start + 1);
  const share = (/** @type {number} */ at) => (100 * (at - start)) / (end - start);
  return html`<div class="gantt">${begun.slice(0, 200).map((step) => {
    const from = Date.parse(step.started_at);
    const until = step.ended_at ? Date.parse(step.ended_at) : now.value;
    const [, tone] = shape(step.state);
    return html`<div key=${step.name}><bdi class="name">${step.name}</bdi><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class=${tone} x=${share(from)} y="1" width=${Math.max(share(until) - share(from), 0.6)} height="8" /></svg><span>${duration(until - from)}</span></div>`;
  })}</div>${begun.length > 200 && html`<p class="quiet">The first 200 of ${begun.length} steps.</p>`}`;
}
