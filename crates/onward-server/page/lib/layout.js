// The layered layout of a graph of steps: plain functions without a document.

/** The size of a node and the space between nodes, in pixels. */
export const NODE = { width: 168, height: 40, across: 56, down: 20 };

/**
 * @typedef {{ name: string, depends_on: string[] }} Step
 * @typedef {{ name: string, x: number, y: number }} Place
 * @typedef {{ from: Place, to: Place }} Edge
 */

/**
 * Places each step one layer behind the last step that it depends on. Within a layer the steps are in the order of
 * the middle of those before them, so that few edges cross.
 * @param {Step[]} steps each after those that it depends on
 * @returns {{ places: Map<string, Place>, edges: Edge[], width: number, height: number }}
 */
export function layout(steps) {
  const layers = /** @type {Step[][]} */ ([]);
  const depth = /** @type {Map<string, number>} */ (new Map());
  for (const step of steps) {
    const layer = Math.max(0, ...step.depends_on.map((name) => (depth.get(name) ?? -1) + 1));
    depth.set(step.name, layer);
    (layers[layer] ??= []).push(step);
  }
  const places = /** @type {Map<string, Place>} */ (new Map());
  const rows = Math.max(1, ...layers.map((layer) => layer.length));
  layers.forEach((layer, column) => {
    const middle = (/** @type {Step} */ step) => median(step.depends_on.map((name) => places.get(name)?.y ?? 0));
    const sorted = column === 0 ? layer : [...layer].sort((one, other) => middle(one) - middle(other));
    const top = ((rows - layer.length) * (NODE.height + NODE.down)) / 2;
    sorted.forEach((step, row) => {
      places.set(step.name, { name: step.name, x: column * (NODE.width + NODE.across), y: top + row * (NODE.height + NODE.down) });
    });
  });
  const edges = steps.flatMap((step) => step.depends_on.flatMap((name) => edge(places.get(name), places.get(step.name))));
  const width = Math.max(1, layers.length) * (NODE.width + NODE.across) - NODE.across;
  return { places, edges, width, height: rows * (NODE.height + NODE.down) - NODE.down };
}

/** @param {Place | undefined} from @param {Place | undefined} to @returns {Edge[]} */
function edge(from, to) {
  return from && to ? [{ from, to }] : [];
}

/** @param {number[]} numbers */
function median(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
