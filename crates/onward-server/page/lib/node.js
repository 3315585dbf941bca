// The content of a node of a graph, in each way of drawing it.

import { shape } from './parts.js';

/**
 * Returns the sign and the tone of a step.
 * @param {any} step
 */
export const look = (step) => shape(step.undo === 'completed' ? 'undoing' : step.state);

/**
 * Returns the two lines of a node.
 * @param {any} node
 */
export function lines({ step, folded }) {
  const name = step.name.length > 17 ? `${step.name.slice(0, 16)}…` : step.name;
  const items = step.items ? ` ${step.items.completed}/${step.items.all}` : '';
  return folded.length > 0 ? [`${folded.length + 1} steps`, `to ${name}`] : [name, `${step.state}${items}`];
}
