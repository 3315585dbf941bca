// The graph of a run: elements that can be reached by keys, or a canvas if there are too many of them.

import { html, useState } from '../lib/html.js';
import { count } from '../lib/format.js';
import { layout, NODE } from '../lib/layout.js';
import { lines, look } from '../lib/node.js';
import { State, Table } from '../lib/parts.js';
import { Canvas } from './canvas.js';

/** The largest number of nodes that are elements. */
const ELEMENTS = 500;

/** The largest number of steps in the list beside a canvas. */
const LISTED = 50;

/** @param {{ graph: any, chosen?: string, choose: (name: string) => void, critical: { nodes: Set<string>, edges: Set<string> } }} props */
export function Graph({ graph, chosen, choose, critical }) {
  if (graph.nodes.length > ELEMENTS) {
    return html`<${Canvas} graph=${graph} chosen=${chosen} choose=${choose} critical=${critical} />
      <${Finder} nodes=${graph.nodes} choose=${choose} />`;
  }
  const { places, edges, width, height } = layout(graph);
  return html`<div class="graph" role="region" aria-label="Graph of the steps" tabindex="0">
    <svg width=${width + 8} height=${height + 8} viewBox=${`-4 -4 ${width + 8} ${height + 8}`} role="group" aria-label=${`${graph.nodes.length} nodes`}>
      ${edges.map((edge) => html`<path key=${edge.key} class=${`edge ${critical.edges.has(edge.key) ? 'critical' : ''}`} d=${edge.path} />`)}
      ${graph.nodes.map((/** @type {any} */ node) => html`<${Node} key=${node.step.name} node=${node} place=${places.get(node.step.name)} isChosen=${[node.step, ...node.folded].some((step) => step.name === chosen)} choose=${choose} isCritical=${critical.nodes.has(node.step.name)} />`)}
    </svg>
  </div>
  ${critical.nodes.size > 0 && html`<p class="quiet legend"><svg width="44" height="14" aria-hidden="true"><path class="edge critical" d="M0 7 H34" /><path class="flag" d="M36 2 l5 5 l-5 5 l-5 -5 z" /></svg> the critical path</p>`}`;
}

/** @param {{ node: any, place: any, isChosen: boolean, isCritical: boolean, choose: (name: string) => void }} props */
function Node({ node, place, isChosen, isCritical, choose }) {
  const { step, folded } = node;
  const [mark, tone] = look(step);
  const [first, second] = lines(node);
  const pick = (/** @type {any} */ event) => {
    if (event.type === 'click' || event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      choose(step.name);
    }
  };
  return html`<g class=${`node ${tone} ${isChosen ? 'chosen' : ''} ${isCritical ? 'critical' : ''}`} transform=${`translate(${place.x} ${place.y})`} role="button" tabindex="0" aria-pressed=${isChosen ? 'true' : 'false'} onClick=${pick} onKeyDown=${pick}>
    ${(isCritical || first !== step.name) && html`<title>${isCritical ? `${step.name}, ${second}, on the critical path` : step.name}</title>`}
    ${folded.length > 0 && html`<rect class="behind" x="4" y="4" width=${NODE.width} height=${NODE.height} rx="8" />`}
    <rect width=${NODE.width} height=${NODE.height} rx="8" />
    <text x="14" y="25" class="mark" aria-hidden="true">${mark}</text>
    <text x="34" y="18">${first}</text>
    <text x="34" y="32" class="sub">${second}</text>
    ${isCritical && html`<path class="flag" d=${`M${NODE.width - 10} -6 l7 7 l-7 7 l-7 -7 z`} />`}
  </g>`;
}

const URGENCY = ['failed', 'dead', 'expired', 'cancelled', 'open', 'waiting'];

/**
 * Finds steps by their names; without a name, those that have ended badly, and then those that are open.
 * @param {{ nodes: any[], choose: (name: string) => void }} props
 */
function Finder({ nodes, choose }) {
  const [text, setText] = useState('');
  const urgency = (/** @type {any} */ step) => URGENCY.indexOf(step.state);
  const steps = nodes.flatMap((node) => [...node.folded, node.step]);
  const found = text ? steps.filter((step) => step.name.includes(text)) : steps.filter((step) => urgency(step) >= 0).sort((one, other) => urgency(one) - urgency(other));
  return html`<label class="field">Find a step<input value=${text} placeholder="a part of its name" onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label>
    ${found.length === 0
      ? html`<p class="quiet">${text ? 'No step has this in its name.' : 'No step has ended badly, and none is open.'}</p>`
      : html`<${Table} label="Steps" columns=${[{ title: 'step' }, { title: 'state' }, { title: 'reason', class: 'wide' }]} rows=${found.slice(0, LISTED).map((step) => ({
          key: step.name,
          cells: [html`<button class="link" onClick=${() => choose(step.name)}><bdi class="name">${step.name}</bdi></button>`, html`<${State} state=${step.state} />`, step.reason?.slice(0, 200) ?? ''],
        }))} />`}
    ${found.length > LISTED && html`<p class="quiet">The first ${LISTED} of ${count(found.length)} steps.</p>`}`;
}
