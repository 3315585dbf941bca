// A run: its graph, and the step that is chosen.

import { html, useEffect, useState } from '../lib/html.js';
import { get, segment } from '../lib/api.js';
import { actOnRun, forkRun, holdInstance, RUN_ACTIONS, sendSignal } from '../lib/actions.js';
import { count, duration } from '../lib/format.js';
import { now, useLoaded } from '../lib/live.js';
import { Action, Ago, Facts, Head, Shown, State, Tabs, TaskLink, Text, shape } from '../lib/parts.js';
import { route, to } from '../lib/route.js';
import { saveRun } from '../lib/save.js';
import { Graph } from './graph.js';
import { answer } from './inbox.js';
import { Compare } from './run-compare.js';
import { CriticalPath, marks, useCriticalPath } from './run-path.js';

/** The largest number of bars of the timeline. */
const BARS = 100;

const BAD = ['failed', 'dead', 'expired', 'cancelled'];

/**
 * Loads a run with the positions of its steps. Paths of completed steps are one node each if there are many steps.
 * @param {string} id
 * @param {boolean} isFolded
 * @param {AbortSignal} signal
 */
async function load(id, isFolded, signal) {
  const graph = await get(`v1/runs/${segment(id)}/graph${isFolded ? '?fold=true' : ''}`, signal);
  return { ...graph, steps: graph.nodes.flatMap((/** @type {any} */ node) => [...node.folded, node.step]), graph };
}

/** @param {{ id: string }} props */
export function Run({ id }) {
  const [isFolded, setFolded] = useState(true);
  const loaded = useLoaded(`${id} ${isFolded}`, (signal) => load(id, isFolded, signal));
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ run) => html`<${Details} run=${run} isFolded=${isFolded} setFolded=${setFolded} />`}<//>`;
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

/** The parts of the screen below the graph. */
const TABS = /** @type {[string, string][]} */ ([['timeline', 'Timeline'], ['path', 'Critical path'], ['compare', 'Compare']]);

/**
 * The chosen part of the screen and the other run of a comparison, which are in the address.
 * @param {string} id
 */
function useTabs(id) {
  const { tab = '', with: other = '' } = route.value.query;
  const inAddress = { tab: TABS.some(([one]) => one === tab) ? tab : 'timeline', other };
  const [chosen, setChosen] = useState(inAddress);
  useEffect(() => setChosen(inAddress), [route.value]);
  const choose = (/** @type {{ tab: string, other: string }} */ next) => {
    setChosen(next);
    // The address changes without a move to the head of the screen.
    history.replaceState(null, '', to(['runs', id], { tab: next.tab, with: next.other }));
  };
  return { ...chosen, choose };
}

/** A run of which nothing is under way. @param {any} run */
const canFork = (run) => run.is_ended || run.phase === 'held';

/** @param {{ run: any, isFolded: boolean, setFolded: (isFolded: boolean) => void }} props */
function Details({ run, isFolded, setFolded }) {
  const [name, setName] = useState(/** @type {string | null} */ (null));
  const { tab, other, choose } = useTabs(run.id);
  const path = useCriticalPath(run.id, tab === 'path');
  const steps = run.steps;
  const first = steps.find((/** @type {any} */ step) => step.question) ?? steps.find((/** @type {any} */ step) => BAD.includes(step.state)) ?? steps.find((/** @type {any} */ step) => step.state === 'open') ?? steps.find((/** @type {any} */ step) => step.state === 'waiting');
  const chosen = steps.find((/** @type {any} */ step) => step.name === name) ?? first;
  const actions = html`${!run.is_ended && (run.paused ? html`<${Action} tone="primary" onClick=${() => holdInstance('runs', run.id, 'resume')}>Resume…<//>` : html`<${Action} onClick=${() => holdInstance('runs', run.id, 'pause')}>Pause…<//>`)}
    ${run.phase !== 'completed' && html`<span data-retry><${Action} onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS.retry))}>Retry…<//></span>`}
    ${!run.is_ended && html`<${Action} onClick=${() => sendSignal('runs', run.id)}>Signal…<//>`}
    ${!run.is_ended && html`<${Action} tone="danger" onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS.cancel))}>Cancel…<//>`}
    ${run.is_ended && run.phase !== 'completed' && html`<${Action} tone="danger" onClick=${() => actOnRun(run.id, /** @type {any} */ (RUN_ACTIONS.undo))}>Undo…<//>`}
    ${canFork(run) && steps.length > 0 && html`<${Action} onClick=${() => forkRun(run, chosen?.name)}>Fork…<//>`}
    ${steps.length > 0 && html`<button onClick=${() => saveRun(run, sentence(run))}>Save as HTML</button>`}`;
  return html`<${Head}
      title=${html`Run ${run.id} <${State} state=${run.paused ? 'paused' : run.phase} />`}
      sub=${html`of <a href=${to(['workflows', run.workflow])}><bdi class="name">${run.workflow}</bdi></a> · <a href=${to(['tasks', run.id])}>its task</a>`}
      actions=${actions}
    />
    <p class="why" role="status"><${Text} text=${sentence(run)} /></p>
    ${steps.length === 0 ? html`<p class="quiet">It has no steps yet.</p>` : html`<${Graph} graph=${run.graph} chosen=${chosen?.name} choose=${setName} critical=${marks(run.graph, path.data)} />
      <${Folds} graph=${run.graph} isFolded=${isFolded} setFolded=${setFolded} chosen=${chosen?.name} choose=${setName} />`}
    ${chosen && html`<${Step} run=${run} step=${chosen} />`}
    ${steps.length > 0 && html`<${Tabs} label="Parts of the run" tabs=${TABS} chosen=${tab} choose=${(/** @type {string} */ tab) => choose({ tab, other })}>
      ${tab === 'timeline' && html`<${Gantt} steps=${steps} />`}
      ${tab === 'path' && html`<${CriticalPath} loaded=${path} steps=${steps} choose=${setName} />`}
      ${tab === 'compare' && html`<${Compare} run=${run} other=${other} choose=${(/** @type {string} */ other) => choose({ tab, other })} />`}
    <//>`}`;
}

/**
 * The steps that one node stands for, and the way to see them all.
 * @param {{ graph: any, isFolded: boolean, setFolded: (isFolded: boolean) => void, chosen?: string, choose: (name: string) => void }} props
 */
function Folds({ graph, isFolded, setFolded, chosen, choose }) {
  const hidden = graph.nodes.reduce((/** @type {number} */ sum, /** @type {any} */ node) => sum + node.folded.length, 0);
  if (hidden === 0 && isFolded) return null;
  const node = graph.nodes.find((/** @type {any} */ node) => node.folded.length > 0 && [node.step, ...node.folded].some((step) => step.name === chosen));
  return html`<p class="quiet">${isFolded ? `Paths of completed steps are one node each: ${count(hidden)} steps have none of their own. ` : 'Every step is drawn. '}
    <button class="link" onClick=${() => setFolded(!isFolded)}>${isFolded ? 'draw every step' : 'fold completed paths'}</button></p>
    ${node && html`<p>In this node: ${[...node.folded, node.step].slice(0, 100).map((/** @type {any} */ step) => html`<button key=${step.name} class="link" onClick=${() => choose(step.name)}><bdi class="name">${step.name}</bdi></button> `)}</p>`}`;
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
    ${canFork(run) && html`<div class="actions"><${Action} small onClick=${() => forkRun(run, step.name)}>Fork from here…<//></div>`}
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
  return html`<div class="gantt">${begun.slice(0, BARS).map((step) => {
    const from = Date.parse(step.started_at);
    const until = step.ended_at ? Date.parse(step.ended_at) : now.value;
    const [, tone] = shape(step.state);
    return html`<div key=${step.name}><bdi class="name">${step.name}</bdi><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class=${tone} x=${share(from)} y="1" width=${Math.max(share(until) - share(from), 0.6)} height="8" /></svg><span>${duration(until - from)}</span></div>`;
  })}</div>${begun.length > BARS && html`<p class="quiet">The first ${BARS} of ${begun.length} steps.</p>`}`;
}
