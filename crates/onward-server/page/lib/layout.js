// The drawing of a graph whose positions the server has computed: plain functions without a document.

/** The size of a node and the space between nodes, in pixels. */
export const NODE = { width: 168, height: 40, across: 56, down: 20 };

/**
 * @typedef {{ x: number, y: number }} Place
 * @typedef {{ columns: number, rows: number, nodes: { x: number, y: number, step: { name: string } }[], edges: { from: string, to: string, waypoints: [number, number][] }[] }} Graph
 */

/**
 * Returns the pixels of the steps, and the path of each dependency.
 * @param {Graph} graph
 * @returns {{ places: Map<string, Place>, edges: { key: string, path: string }[], width: number, height: number }}
 */
export function layout(graph) {
  const places = new Map(graph.nodes.map((node) => [node.step.name, corner(node.x, node.y)]));
  const edges = graph.edges.flatMap(({ from, to, waypoints }) => {
    const [start, end] = [places.get(from), places.get(to)];
    return start && end ? [{ key: `${from}>${to}`, path: path(start, waypoints.map(([x, y]) => corner(x, y)), end) }] : [];
  });
  const width = Math.max(1, graph.columns) * (NODE.width + NODE.across) - NODE.across;
  return { places, edges, width, height: Math.max(1, graph.rows) * (NODE.height + NODE.down) - NODE.down };
}

/** @param {number} x @param {number} y @returns {Place} */
function corner(x, y) {
  return { x: x * (NODE.width + NODE.across), y: y * (NODE.height + NODE.down) };
}

/**
 * Writes a path from the right side of a node to the left side of another one. It passes each waypoint like a node
 * that is not drawn: straight through its column.
 * @param {Place} from
 * @param {Place[]} waypoints
 * @param {Place} to
 */
function path(from, waypoints, to) {
  let [x, y] = [from.x + NODE.width, from.y + NODE.height / 2];
  let text = `M${x} ${y}`;
  for (const place of [...waypoints, to]) {
    const [left, middle] = [place.x, place.y + NODE.height / 2];
    const half = (x + left) / 2;
    text += ` C${half} ${y} ${half} ${middle} ${left} ${middle}`;
    x = left;
    y = middle;
    if (place !== to) {
      x += NODE.width;
      text += ` H${x}`;
    }
  }
  return text;
}
