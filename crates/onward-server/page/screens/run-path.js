// The critical path of a run: the chain of steps that determined its duration, in the graph and as a list.

import { html } from '../lib/html.js';
import { get, segment } from '../lib/api.js';
import { counted, precise } from '../lib/format.js';
import { now, useSettled } from '../lib/live.js';
import { Shown, State, Table, shape } from '../lib/parts.js';

/** The largest number of steps beside the path in the list. */
const OTHERS = 50;

/**
 * Loads the critical path of a run; null while it is not wanted.
 * @param {string} id
 * @param {boolean} isWanted
 */
export function useCriticalPath(id, isWanted) {
  const path = `v1/runs/${segment(id)}/critical-path`;
  // A completed run never changes.
  return useSettled(`${id} ${isWanted}`, (signal) => (isWanted ? get(path, signal) : Promise.resolve(null)), (data) => data?.phase === 'completed');
}

/**
 * Returns the nodes and the edges of a graph that the path passes. A node may stand for several steps.
 * @param {any} graph
 * @param {any} path
 * @returns {{ nodes: Set<string>, edges: Set<string> }}
 */
export function marks(graph, path) {
  const nodeOf = new Map(graph.nodes.flatMap((/** @type {any} */ node) => [...node.folded, node.step].map((step) => [step.name, node.step.name])));
  const names = (path?.steps ?? []).map((/** @type {any} */ step) => nodeOf.get(step.name));
  const edges = names.slice(1).map((/** @type {string} */ name, /** @type {number} */ place) => `${names[place]}>${name}`);
  return { nodes: new Set(names), edges: new Set(edges) };
}

/**
 * Returns the milliseconds of a step; those of an open one last until now.
 * @param {any} step
 * @param {any[]} steps those of the graph
 */
function took(step, steps) {
  const shown = ['open', 'waiting'].includes(step.state) && steps.find(({ name }) => name === step.name);
  return shown?.started_at ? now.value - Date.parse(shown.started_at) : step.took * 1000;
}

/** @param {{ loaded: any, steps: any[], choose: (name: string) => void }} props */
export function CriticalPath({ loaded, steps, choose }) {
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ path) => path && html`<${Path} path=${path} steps=${steps} choose=${choose} />`}<//>`;
}

/** @param {{ path: any, steps: any[], choose: (name: string) => void }} props */
function Path({ path, steps, choose }) {
  if (path.steps.length === 0) return html`<p class="quiet">No step has started, so there is no path yet.</p>`;
  const parts = path.steps.flatMap((/** @type {any} */ step) => [[step.took, step.name, ''], [step.waited, step.name, 'the wait before ']]);
  const [seconds, name, before] = parts.reduce((/** @type {any[]} */ one, /** @type {any[]} */ other) => (other[0] > one[0] ? other : one));
  return html`<p>${path.ended_at ? 'The run took' : 'The run has taken'} ${precise(path.took * 1000)}. ${counted(path.steps.length, 'step')} determined that: each was ready when the one before it ended.${' '}
      ${path.took > 0 && html`The largest part is ${before}<button class="link" onClick=${() => choose(name)}><bdi class="name">${name}</bdi></button>, with ${percent(seconds / path.took)}.`}</p>
    <${Bar} path=${path} />
    <${Table} label="Critical path" columns=${[{ title: 'step' }, { title: 'is' }, { title: 'state' }, { title: 'attempts', class: 'number' }, { title: 'waited', class: 'number' }, { title: 'took', class: 'number' }, { title: 'part', class: 'number' }]}
      rows=${path.steps.map((/** @type {any} */ step) => ({
        key: step.name,
        cells: [pick(step.name, choose), step.kind, html`<${State} state=${step.state} />`, step.attempts || '', step.waited ? precise(step.waited * 1000) : '', precise(took(step, steps)), html`<span>${percent(step.share)}</span>`],
      }))} />
    ${path.rest >= path.took / 100 && path.rest > 0 && html`<p class="quiet">${precise(path.rest * 1000)} behind the last step, such as undos and pauses.</p>`}
    ${path.others.length > 0 && html`<h2>Beside the path</h2>
      <p class="quiet">The slack is the most by which a step could have ended later without a later end of the run.</p>
      <${Table} label="Steps beside the path" columns=${[{ title: 'step' }, { title: 'is' }, { title: 'state' }, { title: 'took', class: 'number' }, { title: 'slack', class: 'number' }]}
        rows=${path.others.slice(0, OTHERS).map((/** @type {any} */ step) => ({
          key: step.name,
          cells: [pick(step.name, choose), step.kind, html`<${State} state=${step.state} />`, precise(took(step, steps)), precise(step.slack * 1000)],
        }))} />
      ${path.others.length > OTHERS && html`<p class="quiet">The ${OTHERS} with the least slack, of ${counted(path.others.length, 'step')}.</p>`}`}`;
}

/** @param {string} name @param {(name: string) => void} choose */
const pick = (name, choose) => html`<button class="link" onClick=${() => choose(name)}><bdi class="name">${name}</bdi></button>`;

/** @param {number} share */
const percent = (share) => (share > 0 && share < 0.01 ? 'under 1 %' : `${Math.round(share * 100)} %`);

/**
 * The parts of the run's duration, one behind the other. A wait before a step has half the height.
 * @param {{ path: any }} props
 */
function Bar({ path }) {
  let at = 0;
  const total = path.took || 1;
  const parts = path.steps.flatMap((/** @type {any} */ step) => {
    const [start, middle] = [at, at + (100 * step.waited) / total];
    at = middle + (100 * step.took) / total;
    const [, tone] = shape(step.state);
    return [
      html`<rect key=${`${step.name} waited`} class="quiet" x=${start} y="4" width=${middle - start} height="4" />`,
      html`<rect key=${step.name} class=${tone} x=${middle} y="1" width=${Math.max(at - middle - 0.3, 0.2)} height="10" />`,
    ];
  });
  return html`<svg class="parts" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">${parts}</svg>`;
}
