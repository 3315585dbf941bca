// A run as one HTML file without scripts and without requests, for a ticket or an archive.

import { duration } from './format.js';
import { layout, NODE } from './layout.js';
import { lines, look } from './node.js';
import { shape } from './parts.js';

/** The rules of the file: it has its own small style sheet and loads nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE = `
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { max-width: 1280px; margin: 24px auto; padding: 0 20px; }
.graph { overflow: auto; border: 1px solid #8884; border-radius: 10px; padding: 12px; }
svg { display: block; } path { fill: none; stroke: #8888; } rect { fill: none; stroke: currentColor; } text { fill: currentColor; font-size: 12px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid #8883; vertical-align: top; overflow-wrap: anywhere; }
.good { color: light-dark(#1c7040, #6fcf97); } .bad { color: light-dark(#b3261e, #ff9a8f); } .warn { color: light-dark(#8a5300, #f0b657); }
.run { color: light-dark(#2352c4, #8fb0ff); } .wait { color: light-dark(#6a4aa5, #c3a9f5); } .quiet { color: light-dark(#63676f, #9aa0ab); }
.bar { width: 240px; height: 12px; background: #8882; } .bar rect { fill: currentColor; }
`;

/**
 * Writes a text as HTML.
 * @param {unknown} value
 */
function text(value) {
  return String(value ?? '').replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** @param {any} step */
function stateOf(step) {
  const [mark, tone] = look(step);
  return `<span class="${tone}">${mark} ${text(step.state)}</span>`;
}

/** @param {any} graph */
function drawing(graph) {
  const { places, edges, width, height } = layout(graph);
  const nodes = graph.nodes.map((/** @type {any} */ node) => {
    const { step } = node;
    const place = places.get(step.name) ?? { x: 0, y: 0 };
    const [mark, tone] = look(step);
    const [first, second] = lines(node);
    return `<g class="${tone}" transform="translate(${place.x} ${place.y})"><title>${text(step.name)}</title><rect width="${NODE.width}" height="${NODE.height}" rx="8"/><text x="12" y="25">${mark}</text><text x="34" y="18">${text(first)}</text><text x="34" y="32">${text(second)}</text></g>`;
  });
  const paths = edges.map((edge) => `<path d="${edge.path}"/>`);
  return `<div class="graph"><svg width="${width + 8}" height="${height + 8}" viewBox="-4 -4 ${width + 8} ${height + 8}" role="img" aria-label="Graph of the steps">${paths.join('')}${nodes.join('')}</svg></div>`;
}

/**
 * @param {any} step
 * @param {number} start
 * @param {number} end
 */
function row(step, start, end) {
  const from = step.started_at && Date.parse(step.started_at);
  const until = step.ended_at ? Date.parse(step.ended_at) : end;
  const share = (/** @type {number} */ at) => (100 * (at - start)) / Math.max(end - start, 1);
  const [, tone] = shape(step.state);
  const bar = from ? `<svg class="bar ${tone}" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect x="${share(from)}" width="${Math.max(share(until) - share(from), 0.6)}" height="10"/></svg>` : '';
  const cells = [text(step.name), stateOf(step), text(step.started_at), from ? text(duration(until - from)) : '', bar, text(step.attempts || ''), text(step.reason ?? step.question), text(step.depends_on.join(', '))];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

/**
 * Returns the file.
 * @param {any} run
 * @param {string} sentence the state of the run
 * @param {Date} at
 */
export function runFile(run, sentence, at) {
  const times = run.steps.flatMap((/** @type {any} */ step) => [step.started_at, step.ended_at].filter(Boolean).map(Date.parse));
  const start = Math.min(...times, at.getTime());
  const end = run.is_ended ? Math.max(...times, start + 1) : at.getTime();
  const titles = ['step', 'state', 'started (UTC)', 'took', 'time', 'attempts', 'reason', 'depends on'];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width"><title>Run ${text(run.id)} of ${text(run.workflow)}</title><style>${STYLE}</style></head>
<body><h1>Run ${text(run.id)} of <bdi>${text(run.workflow)}</bdi></h1>
<p>${stateOf({ state: run.paused ? 'paused' : run.phase })} · ${text(sentence)}</p><p class="quiet">As of ${at.toISOString()}.</p>
${drawing(run.graph)}
<h2>Steps</h2><table><thead><tr>${titles.map((title) => `<th scope="col">${title}</th>`).join('')}</tr></thead>
<tbody>${run.steps.map((/** @type {any} */ step) => row(step, start, end)).join('\n')}</tbody></table></body></html>
`;
}

/**
 * Offers the file as a download.
 * @param {any} run
 * @param {string} sentence
 */
export function saveRun(run, sentence) {
  const url = URL.createObjectURL(new Blob([runFile(run, sentence, new Date())], { type: 'text/html' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: `run-${run.id}.html` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
