// One task: its state in a sentence, what happened, and what can be done.

import { html } from '../lib/html.js';
import { get, getContent, may } from '../lib/api.js';
import { cancelTask, completeTask, moveTask, retryTask, runTaskNow } from '../lib/actions.js';
import { duration, exact } from '../lib/format.js';
import { now, useLoaded } from '../lib/live.js';
import { Action, Ago, Facts, Head, Name, Shown, State, TaskLink, Text, shape } from '../lib/parts.js';
import { to } from '../lib/route.js';
import { TaskTable } from './tasks.js';

const ENDED = ['completed', 'failed', 'dead', 'cancelled', 'expired'];

/** The number of children that the screen lists. */
const CHILDREN = 20;

/** @param {string} id @param {AbortSignal} signal */
async function load(id, signal) {
  const path = `v1/tasks/${encodeURIComponent(id)}`;
  const task = await get(path, signal);
  const isEnded = ENDED.includes(task.state);
  const none = { text: '', is: 'none' };
  const content = (/** @type {string} */ part) => (may('operator') ? getContent(`${path}/${part}`, signal) : none);
  const [attempts, why, children, payload, result] = await Promise.all([
    get(`${path}/attempts`, signal),
    isEnded ? null : get(`${path}/why`, signal),
    get(`v1/tasks?parent=${task.id}&limit=${CHILDREN}`, signal),
    content('payload'),
    task.state === 'completed' ? content('result') : none,
  ]);
  return { task, attempts: attempts.items, why, children, payload, result };
}

/** @param {{ id: string }} props */
export function Task({ id }) {
  const loaded = useLoaded(id, (signal) => load(id, signal));
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Details} ...${data} />`}<//>`;
}

/** @param {any} task @param {any} why */
function sentence(task, why) {
  const reasons = (why?.reasons ?? []).map((/** @type {any} */ reason) => reason.text);
  if (reasons.length > 0) return reasons.length === 1 ? reasons[0] : `• ${reasons.join('\n• ')}`;
  const took = task.started_at && task.finished_at ? Date.parse(task.finished_at) - Date.parse(task.started_at) : undefined;
  const attempts = `${task.attempts} ${task.attempts === 1 ? 'attempt' : 'attempts'}`;
  switch (task.state) {
    case 'completed':
      return `It completed after ${attempts}${took === undefined ? '' : `; the last one took ${duration(took)}`}.`;
    case 'dead':
      return `It failed after all retries, with ${attempts}. Retry it when its cause is mended.`;
    case 'failed':
      return 'It failed, and its handler said that a retry would not help.';
    case 'cancelled':
      return 'It was cancelled.';
    case 'expired':
      return 'Its time was over before an attempt could start.';
    case 'running':
      return task.cancel_requested ? 'It runs, and its worker was asked to stop.' : `It runs, in attempt ${task.attempts}.`;
    default:
      return 'Nothing holds it back; it starts when a worker is free.';
  }
}

/** @param {any} data */
function Details({ task, attempts, why, children, payload, result }) {
  const isRun = task.kind.startsWith('run:');
  const more = isRun ? to(['runs', task.id]) : task.orchestration ? to(['orchestrations', task.id]) : undefined;
  return html`<${Head}
      title=${html`Task ${task.id} <${State} state=${task.state} />`}
      sub=${html`<bdi class="name">${task.kind}</bdi> in queue <${Name} text=${task.queue} href=${to(['queues', task.queue])} />${more && html` · <a href=${more}>${isRun ? 'steps of the run' : 'orchestration'}</a>`}`}
      actions=${html`<${Actions} task=${task} why=${why} />`}
    />
    <p class="why" role="status"><${Text} text=${sentence(task, why)} /></p>
    ${task.progress && html`<${Progress} progress=${task.progress} />`}
    <${Timeline} task=${task} attempts=${attempts} />
    <div class="columns">
      <section><h2>Payload</h2><${Content} content=${payload} none="It has no payload." /></section>
      <section><h2>Result</h2><${Content} content=${result} none=${ENDED.includes(task.state) ? 'It has no result.' : 'It has not ended.'} /></section>
    </div>
    <h2>Details</h2>
    <${Facts} items=${facts(task)} />
    ${children.items.length > 0 && html`<h2>Children</h2><${TaskTable} tasks=${children.items} />${children.next && html`<p><a href=${to(['tasks'], { parent: task.id })}>all children</a></p>`}`}`;
}

/** @param {{ task: any, why: any }} props */
function Actions({ task, why }) {
  const isEnded = ENDED.includes(task.state);
  const isExternal = (why?.reasons ?? []).some((/** @type {any} */ reason) => /extern/.test(reason.reason));
  return html`${isEnded && html`<span data-retry><${Action} tone="primary" onClick=${() => retryTask(task)}>Retry…<//></span>`}
    ${task.state === 'scheduled' && html`<${Action} tone="primary" onClick=${() => runTaskNow(task)}>Run now…<//>`}
    ${isExternal && html`<${Action} tone="primary" onClick=${() => completeTask(task)}>Complete…<//>`}
    ${!isEnded && html`<${Action} onClick=${() => moveTask(task)}>Move…<//>`}
    ${!isEnded && html`<${Action} tone="danger" onClick=${() => cancelTask(task)}>Cancel…<//>`}`;
}

/** @param {{ progress: any }} props */
function Progress({ progress }) {
  const { fraction, message, at } = progress;
  return html`<p class="progress">${fraction !== undefined && html`<progress max="1" value=${fraction} aria-label="Progress"></progress> ${Math.round(fraction * 100)} %`} ${message && html`<bdi>${message}</bdi>`} <span class="quiet"><${Ago} at=${at} /></span></p>`;
}

/** @param {{ content: { text: string, is: string }, none: string }} props */
function Content({ content, none }) {
  if (!may('operator')) return html`<p class="quiet">Payloads and results are shown to operators.</p>`;
  if (content.is === 'none' || (content.text === '' && content.is !== 'bytes')) return html`<p class="quiet">${none}</p>`;
  return html`<pre class="content" tabindex="0"><${Text} text=${content.text} limit=${5000} /></pre>`;
}

/** @param {{ task: any, attempts: any[] }} props */
function Timeline({ task, attempts }) {
  const steps = [{ at: task.submitted_at, state: 'pending', text: 'submitted' }];
  for (const error of attempts) steps.push({ at: error.at, state: 'failed', text: error.attempt ? `attempt ${error.attempt} failed: ${error.message}` : error.message });
  if (task.started_at && !task.finished_at && task.state === 'running') steps.push({ at: task.started_at, state: 'running', text: `attempt ${task.attempts} started` });
  if (task.finished_at) steps.push({ at: task.finished_at, state: task.state, text: task.state });
  else if (task.state === 'scheduled') steps.push({ at: task.due_at, state: 'scheduled', text: 'due' });
  const shown = steps.length > 60 ? [...steps.slice(0, 5), ...steps.slice(-55)] : steps;
  return html`<h2>What happened</h2>
    <ol class="timeline">
      ${shown.map((step, place) => {
        const [mark, tone] = shape(step.state);
        return html`<li key=${place} class=${tone}><span class="mark" aria-hidden="true">${mark}</span><time datetime=${step.at} title=${exact(step.at)}><${Ago} at=${step.at} /></time><${Text} text=${step.text} limit=${400} /></li>`;
      })}
    </ol>
    ${shown.length < steps.length && html`<p class="quiet">${steps.length - shown.length} failed attempts are not shown; <code>onward task show ${task.id}</code> lists them.</p>`}`;
}

/** @param {any} task @returns {[string, unknown][]} */
function facts(task) {
  const tags = Object.entries(task.tags);
  void now.value;
  return [
    ['group', task.group && html`<${Name} text=${task.group} href=${to(['tasks'], { group: task.group })} />`],
    ['key', task.key && html`<bdi class="name">${task.key}</bdi>`],
    ['priority', task.priority],
    ['submitted', html`<${Ago} at=${task.submitted_at} />`],
    ['due', html`<${Ago} at=${task.due_at} />`],
    ['started', task.started_at && html`<${Ago} at=${task.started_at} />`],
    ['ended', task.finished_at && html`<${Ago} at=${task.finished_at} />`],
    ['expires', task.expires_at && html`<${Ago} at=${task.expires_at} />`],
    ['attempts', task.attempts],
    ['timeout', task.timeout],
    ['parent', task.parent && html`<${TaskLink} id=${task.parent} />`],
    ['waits for', task.blocked_by.length > 0 && task.blocked_by.slice(0, 20).map((/** @type {string} */ id) => html`<${TaskLink} id=${id} /> `)],
    ['tags', tags.length > 0 && tags.map(([key, value]) => html`<a class="chip" href=${to(['tasks'], { tag: `${key}=${value}` })}><bdi class="name">${key}=${value}</bdi></a> `)],
  ];
}
