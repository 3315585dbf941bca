// Home: is it well, what is stuck, and why?

import { html, useRef } from '../lib/html.js';
import { duration, milliseconds, rate } from '../lib/format.js';
import { causes, oldest, sentence } from '../lib/health.js';
import { now, usePath } from '../lib/live.js';
import { Count, Empty, Head, Name, Shown, Spark, Table } from '../lib/parts.js';
import { to } from '../lib/route.js';

/** The number of samples that the lines show: five minutes, one each five seconds. */
const SAMPLES = 60;

/** The time between two samples, in milliseconds. */
const STEP = 5000;

/** The days of which the overview has the ends, and the length of one in milliseconds. */
const DAYS = 14;
const DAY = 86_400_000;

/** The largest number of queues in the list of days. */
const QUEUES = 20;

export function Home() {
  const loaded = usePath('v1/overview');
  return html`<${Shown} loaded=${loaded}>${(/** @type {import('../lib/health.js').Overview} */ overview) => html`<${Health} overview=${overview} />`}<//>`;
}

/** @param {{ overview: import('../lib/health.js').Overview }} props */
function Health({ overview }) {
  const found = causes(overview, now.value);
  const tone = found.some((cause) => cause.tone === 'bad') ? 'bad' : found.length > 0 ? 'warn' : 'good';
  const mark = { good: '✔', warn: '!', bad: '✕' }[tone];
  return html`<div class=${`health ${tone}`}>
      <${Head} title=${html`<span class="mark" aria-hidden="true">${mark}</span> ${sentence(overview, found)}`} />
      ${found.length > 0 && html`<ul>${found.slice(0, 8).map((cause) => html`<li key=${cause.text} class=${cause.tone}><a href=${cause.href}><bdi>${cause.text}</bdi></a></li>`)}</ul>`}
      ${found.length > 8 && html`<p><a href="#/queues">and ${found.length - 8} more queues</a></p>`}
    </div>
    <${Rates} overview=${overview} />
    <h2>Queues</h2>
    ${overview.queues.length === 0 ? html`<${Empty} title="There are no tasks yet. Submit one:" command=${`onward submit --kind hello '{"name": "Ada"}'`} />` : html`<${QueueTable} queues=${overview.queues} />`}
    ${overview.days.length > 0 && html`<h2>The last ${DAYS} days</h2><${Days} days=${overview.days} />`}
    <h2>Kinds</h2>
    ${overview.kinds.length === 0 ? html`<p class="quiet">No task has ended yet.</p>` : html`<${Kinds} kinds=${overview.kinds} />`}`;
}

/**
 * The recorded ends of tasks by day, in UTC.
 * @param {{ days: import('../lib/health.js').Day[] }} props
 */
function Days({ days }) {
  const today = Math.floor(now.value / DAY);
  const rows = new Map();
  for (const { day, queue, ended } of days) {
    const row = rows.get(queue) ?? { queue, completed: Array(DAYS).fill(0), bad: 0, all: 0 };
    const place = DAYS - 1 - (today - Math.floor(Date.parse(day) / DAY));
    const bad = ended.failed + ended.dead + ended.expired;
    if (place in row.completed) row.completed[place] += ended.completed;
    row.bad += bad;
    row.all += ended.completed + bad;
    rows.set(queue, row);
  }
  const busiest = [...rows.values()].sort((one, other) => other.all - one.all).slice(0, QUEUES);
  return html`<${Table} label="Tasks by day" columns=${[{ title: 'queue' }, { title: 'completed by day' }, { title: 'today', class: 'number' }, { title: 'completed', class: 'number' }, { title: 'failed', class: 'number' }]}
      rows=${busiest.map((row) => ({
        key: row.queue,
        cells: [
          html`<${Name} text=${row.queue} href=${to(['queues', row.queue])} />`,
          html`<${Spark} values=${row.completed} label=${`completed on each day: ${row.completed.join(', ')}`} />`,
          html`<${Count} number=${row.completed.at(-1)} />`,
          html`<${Count} number=${row.all - row.bad} />`,
          row.all > 0 && row.bad > 0 ? html`<span class="bad">${((100 * row.bad) / row.all).toFixed(1)} %</span>` : html`<span class="quiet">0 %</span>`,
        ],
      }))} />
    ${rows.size > QUEUES && html`<p class="quiet">The busiest ${QUEUES} of ${rows.size} queues; <code>onward queue history</code> shows all.</p>`}`;
}

/**
 * @typedef {{ at: number, ended: number, bad: number, waiting: number }} Sample
 * @param {{ overview: import('../lib/health.js').Overview }} props
 */
function Rates({ overview }) {
  const samples = useRef(/** @type {Sample[]} */ ([]));
  const total = (/** @type {(ended: any) => number} */ of) => overview.kinds.reduce((sum, kind) => sum + of(kind.ended), 0);
  const bad = total((ended) => ended.failed + ended.dead + ended.expired);
  const sample = {
    at: now.value,
    ended: total((ended) => ended.completed) + bad,
    bad,
    waiting: overview.queues.reduce((sum, queue) => sum + queue.waiting, 0),
  };
  const kept = samples.current;
  const last = kept.at(-1);
  if (!last || sample.at - last.at >= STEP) samples.current = [...kept, sample].slice(-SAMPLES);
  const shown = samples.current.length > 1 ? samples.current : [sample, sample];
  const first = shown[0] ?? sample;
  const newest = /** @type {Sample} */ ({ ...sample });
  const seconds = Math.max((newest.at - first.at) / 1000, 1);
  const ended = newest.ended - first.ended;
  const failed = newest.bad - first.bad;
  const steps = shown.slice(1).map((one, place) => ({ ended: one.ended - (shown[place]?.ended ?? 0), bad: one.bad - (shown[place]?.bad ?? 0) }));
  const share = ended > 0 ? `${((100 * failed) / ended).toFixed(1)} %` : '–';
  return html`<section class="tiles" aria-label="Since this screen was opened">
    <${Tile} name="done" value=${rate(ended / seconds)} values=${steps.map((step) => step.ended)} />
    <${Tile} name="failed" value=${share} values=${steps.map((step) => step.bad)} tone="bad" />
    <${Tile} name="waiting" value=${String(newest.waiting)} values=${shown.map((one) => one.waiting)} tone="wait" />
    <${Tile} name="workers" value=${String(overview.workers.length)} values=${[]} />
  </section>`;
}

/** @param {{ name: string, value: string, values: number[], tone?: string }} props */
function Tile({ name, value, values, tone }) {
  return html`<div class="tile"><span>${name}</span><b>${value}</b>${values.length > 1 && html`<${Spark} values=${values} tone=${tone} label=${`${name}, the last minutes`} />`}</div>`;
}

/** @param {{ queues: import('../lib/health.js').Queue[] }} props */
export function QueueTable({ queues }) {
  const sorted = [...queues].sort((one, other) => oldest(other, now.value) - oldest(one, now.value) || one.name.localeCompare(other.name));
  return html`<${Table}
    label="Queues"
    columns=${[
      { title: 'queue' },
      { title: 'state' },
      { title: 'waiting', class: 'number' },
      { title: 'oldest', class: 'number' },
      { title: 'running', class: 'number' },
      { title: 'scheduled', class: 'number' },
      { title: 'done', class: 'number' },
      { title: 'dead', class: 'number' },
    ]}
    rows=${sorted.slice(0, 200).map((queue) => ({ key: queue.name, cells: queueCells(queue) }))}
  />${queues.length > 200 && html`<p class="quiet">The 200 queues with the oldest tasks, of ${queues.length}.</p>`}`;
}

/** @param {import('../lib/health.js').Queue} queue */
function queueCells(queue) {
  const age = oldest(queue, now.value);
  const filter = (/** @type {string} */ state) => to(['tasks'], { queue: queue.name, state });
  const late = age >= 60_000 ? 'warn' : '';
  return [
    html`<${Name} text=${queue.name} href=${to(['queues', queue.name])} />`,
    queue.paused ? html`<span class="state warn"><span class="mark" aria-hidden="true">‖</span>paused</span>` : html`<span class="quiet">open</span>`,
    html`<${Count} number=${queue.waiting} href=${filter('waiting')} />`,
    queue.waiting > 0 ? html`<span class=${late}>${duration(age)}</span>` : html`<span class="quiet">–</span>`,
    html`<${Count} number=${queue.running} href=${filter('running')} />${queue.concurrency !== null && html` <span class="quiet">of ${queue.concurrency}</span>`}`,
    html`<${Count} number=${queue.scheduled} href=${filter('scheduled')} />`,
    html`<${Count} number=${queue.ended.completed ?? 0} href=${filter('completed')} />`,
    html`<${Count} number=${queue.ended.dead ?? 0} tone="bad" href=${filter('dead')} />`,
  ];
}

/** @param {{ kinds: any[] }} props */
function Kinds({ kinds }) {
  const sorted = [...kinds].sort((one, other) => other.ended.completed - one.ended.completed);
  return html`<${Table}
    label="Kinds"
    columns=${[{ title: 'kind' }, { title: 'completed', class: 'number' }, { title: 'failed', class: 'number' }, { title: 'dead', class: 'number' }, { title: 'longest run', class: 'number' }]}
    rows=${sorted.slice(0, 50).map((kind) => ({
      key: kind.kind,
      cells: [
        html`<${Name} text=${kind.kind} href=${to(['tasks'], { kind: kind.kind })} />`,
        html`<${Count} number=${kind.ended.completed} />`,
        html`<${Count} number=${kind.ended.failed} tone="bad" />`,
        html`<${Count} number=${kind.ended.dead} tone="bad" href=${to(['tasks'], { kind: kind.kind, state: 'dead' })} />`,
        duration(milliseconds(kind.run_maximum)),
      ],
    }))}
  />${kinds.length > 50 && html`<p class="quiet">The 50 kinds with the most completed tasks, of ${kinds.length}.</p>`}`;
}
