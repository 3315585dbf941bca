// A graph with too many nodes for elements: a canvas in front of a scrolled area, which draws what is in sight.

import { html, useEffect, useRef, useState } from '../lib/html.js';
import { count } from '../lib/format.js';
import { NODE } from '../lib/layout.js';
import { lines, look } from '../lib/node.js';

const SCALES = [0.05, 0.1, 0.2, 0.4, 0.7, 1];

/** The scale from which nodes have text, and edges are curves. */
const DETAILED = 0.4;

/** The number of edges that are drawn as one path. */
const EDGES_AT_ONCE = 100;

const [STEP_X, STEP_Y] = [NODE.width + NODE.across, NODE.height + NODE.down];

const TONES = ['quiet', 'good', 'bad', 'warn', 'run', 'wait'];

/**
 * @typedef {{ box: HTMLElement, canvas: HTMLCanvasElement, scale: number, graph: any, chosen?: string, critical: { nodes: Set<string>, edges: Set<string> } }} Scene
 * @typedef {{ left: number, top: number, right: number, bottom: number }} Sight
 */

/** @param {{ graph: any, chosen?: string, choose: (name: string) => void, critical: { nodes: Set<string>, edges: Set<string> } }} props */
export function Canvas({ graph, chosen, choose, critical }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [scale, setScale] = useState(0);
  const [width, height] = [graph.columns * STEP_X, graph.rows * STEP_Y];
  const paint = useRef(() => {});
  paint.current = () => {
    if (box.current && canvas.current) draw({ box: box.current, canvas: canvas.current, scale: scale || 1, graph, chosen, critical });
  };
  useEffect(() => {
    const fits = SCALES.filter((one) => box.current && one * width <= box.current.clientWidth && one * height <= 2 * box.current.clientHeight);
    setScale(fits.at(-1) ?? /** @type {number} */ (SCALES[0]));
  }, []);
  useEffect(() => paint.current(), [graph, chosen, scale, critical.edges.size]);
  useEffect(() => watch(/** @type {HTMLElement} */ (box.current), () => paint.current()), []);
  const place = SCALES.indexOf(scale);
  const zoom = (/** @type {number} */ by) => setScale(SCALES[Math.min(Math.max(place + by, 0), SCALES.length - 1)] ?? 1);
  const pick = (/** @type {MouseEvent} */ event) => {
    const area = /** @type {HTMLElement} */ (box.current);
    const frame = area.getBoundingClientRect();
    const at = { x: (event.clientX - frame.left + area.scrollLeft) / scale, y: (event.clientY - frame.top + area.scrollTop) / scale };
    const node = graph.nodes.find((/** @type {any} */ { x, y }) => at.x >= x * STEP_X && at.x <= x * STEP_X + NODE.width && at.y >= y * STEP_Y && at.y <= y * STEP_Y + NODE.height);
    if (node) choose(node.step.name);
  };
  return html`<div class="actions zoom" role="group" aria-label="Size of the graph">
      <button class="small" onClick=${() => zoom(-1)} disabled=${place === 0}>smaller</button>
      <button class="small" onClick=${() => zoom(1)} disabled=${place === SCALES.length - 1}>larger</button>
      <button class="small" onClick=${() => show(/** @type {any} */ (box.current), graph, chosen, scale)} disabled=${!chosen}>show the chosen step</button>
      <span class="quiet">${count(graph.nodes.length)} nodes at ${Math.round(scale * 100)} %</span>
    </div>
    <div class="graph large" ref=${box} role="region" aria-label="Graph of the steps; its steps are in the list below" tabindex="0" onClick=${pick}>
      <div class="area" style=${{ width: `${width * scale}px`, height: `${height * scale}px` }}><canvas ref=${canvas} aria-hidden="true"></canvas></div>
      ${TONES.map((tone) => html`<i key=${tone} class=${`tone ${tone}`}></i>`)}<i class="tone back"></i><i class="tone text"></i>
    </div>`;
}

/**
 * Calls a function once a frame while an element scrolls or changes its size, and when the theme changes.
 * @param {HTMLElement} element
 * @param {() => void} act
 */
function watch(element, act) {
  let frame = 0;
  const plan = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(act);
  };
  const sizes = new ResizeObserver(plan);
  sizes.observe(element);
  const theme = matchMedia('(prefers-color-scheme: dark)');
  theme.addEventListener('change', plan);
  element.addEventListener('scroll', plan, { passive: true });
  return () => {
    cancelAnimationFrame(frame);
    sizes.disconnect();
    theme.removeEventListener('change', plan);
    element.removeEventListener('scroll', plan);
  };
}

/** @param {HTMLElement} box @param {any} graph @param {string | undefined} chosen @param {number} scale */
function show(box, graph, chosen, scale) {
  const node = graph.nodes.find((/** @type {any} */ { step, folded }) => [step, ...folded].some((one) => one.name === chosen));
  if (node) box.scrollTo(node.x * STEP_X * scale - box.clientWidth / 2, node.y * STEP_Y * scale - box.clientHeight / 2);
}

/**
 * Returns the colours of the theme, which only the style sheet knows.
 * @param {HTMLElement} box
 */
function colours(box) {
  const found = [...box.querySelectorAll('.tone')].map((element) => [element.className.replace('tone ', ''), getComputedStyle(element).color]);
  return /** @type {Record<string, string>} */ (Object.fromEntries(found));
}

/** @param {Scene} scene */
function draw(scene) {
  const { box, canvas, scale } = scene;
  const [width, height, ratio] = [box.clientWidth, box.clientHeight, devicePixelRatio || 1];
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const [x, y] = [box.scrollLeft, box.scrollTop];
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.setTransform(ratio * scale, 0, 0, ratio * scale, -x * ratio, -y * ratio);
  const sight = { left: x / scale, top: y / scale, right: (x + width) / scale, bottom: (y + height) / scale };
  const colour = colours(box);
  drawEdges(pen, scene, sight, colour, false);
  drawEdges(pen, scene, sight, colour, true);
  drawNodes(pen, scene, sight, colour);
}

/** @param {CanvasRenderingContext2D} pen @param {Scene} scene @param {Sight} sight @param {Record<string, string>} colour @param {boolean} isCritical */
function drawEdges(pen, { graph, scale, critical }, sight, colour, isCritical) {
  if (isCritical && critical.edges.size === 0) return;
  const places = new Map(graph.nodes.map((/** @type {any} */ node) => [node.step.name, node]));
  pen.strokeStyle = (isCritical ? colour.text : colour.quiet) ?? '';
  pen.globalAlpha = isCritical ? 1 : 0.6;
  pen.lineWidth = isCritical ? Math.max(3, 2 / scale) : Math.max(1.2, 0.5 / scale);
  pen.beginPath();
  let drawn = 0;
  for (const { from, to, waypoints } of graph.edges) {
    if (critical.edges.has(`${from}>${to}`) !== isCritical) continue;
    // The time to draw one path grows faster than its length.
    if (++drawn % EDGES_AT_ONCE === 0) {
      pen.stroke();
      pen.beginPath();
    }
    const [start, end] = [places.get(from), places.get(to)];
    if (!start || !end) continue;
    let [x, y] = [start.x * STEP_X + NODE.width, start.y * STEP_Y + NODE.height / 2];
    let isMoved = false;
    for (const [column, row] of [...waypoints, [end.x, end.y]]) {
      const [left, middle] = [column * STEP_X, row * STEP_Y + NODE.height / 2];
      const isSeen = x <= sight.right && left >= sight.left && Math.min(y, middle) <= sight.bottom && Math.max(y, middle) >= sight.top;
      if (isSeen) {
        if (!isMoved) pen.moveTo(x, y);
        const half = (x + left) / 2;
        if (scale >= DETAILED) pen.bezierCurveTo(half, y, half, middle, left, middle);
        else pen.lineTo(left, middle);
        pen.lineTo(left + (column === end.x ? 0 : NODE.width), middle);
      }
      isMoved = isSeen;
      x = left + NODE.width;
      y = middle;
    }
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} pen @param {Scene} scene @param {Sight} sight @param {Record<string, string>} colour */
function drawNodes(pen, { graph, scale, chosen, critical }, sight, colour) {
  pen.font = '12.5px system-ui, sans-serif';
  for (const node of graph.nodes) {
    const [x, y] = [node.x * STEP_X, node.y * STEP_Y];
    if (x > sight.right || x + NODE.width < sight.left || y > sight.bottom || y + NODE.height < sight.top) continue;
    const [mark, tone] = look(node.step);
    const ink = colour[tone] ?? '';
    const isChosen = node.step.name === chosen || node.folded.some((/** @type {any} */ step) => step.name === chosen);
    const isCritical = critical.nodes.has(node.step.name);
    if (scale < DETAILED) {
      pen.fillStyle = ink;
      pen.fillRect(x, y, NODE.width, NODE.height);
      if (isChosen || isCritical) strokeBox(pen, x, y, colour.text ?? '', (isChosen ? 4 : 2) / scale);
      continue;
    }
    pen.fillStyle = colour.back ?? '';
    pen.fillRect(x, y, NODE.width, NODE.height);
    strokeBox(pen, x, y, ink, isChosen || isCritical ? 3 : 1.2);
    const [first, second] = lines(node);
    pen.fillStyle = ink;
    pen.fillText(mark, x + 14, y + 25);
    pen.fillStyle = colour.text ?? '';
    pen.fillText(first ?? '', x + 34, y + 18);
    pen.fillStyle = colour.quiet ?? '';
    pen.fillText(second ?? '', x + 34, y + 32);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} y @param {string} ink @param {number} width */
function strokeBox(pen, x, y, ink, width) {
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  pen.strokeRect(x, y, NODE.width, NODE.height);
}
