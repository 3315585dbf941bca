// Forms from JSON Schemas: for the input of a run, and for the answer to a question.

import { json } from './sheet.js';

/** The largest number of properties that a form shows; above it the value is typed as JSON. */
const MOST = 20;

/**
 * @typedef {Record<string, string>} Values
 * @typedef {{ fields: import('./sheet.js').Field[], value: (values: Values) => unknown }} Form
 */

/**
 * Returns the form of a schema. A schema that is no object with few properties is a single field for JSON.
 * @param {any} schema
 * @param {{ label: string, value: string }} single the field without a form
 * @returns {Form}
 */
export function form(schema, single) {
  const properties = schema?.type === 'object' ? Object.entries(schema.properties ?? {}) : [];
  const required = /** @type {string[]} */ (schema?.required ?? []);
  if (properties.length === 0 || properties.length > MOST) {
    return { fields: [{ name: 'value', label: single.label, type: 'json', value: single.value, hint: 'JSON' }], value: (values) => json(single.label, values.value ?? '') };
  }
  const value = (/** @type {Values} */ values) => {
    const set = properties.filter(([name]) => (values[key(name)] ?? '') !== '' || required.includes(name));
    return Object.fromEntries(set.map(([name, property]) => [name, read(property, name, values[key(name)] ?? '')]));
  };
  return { fields: properties.map(([name, property]) => field(name, property, required.includes(name))), value };
}

/**
 * Returns the name of the field of a property, which cannot be the name of another field of the sheet.
 * @param {string} name
 */
const key = (name) => `property ${name}`;

/** @param {any} schema */
function choices(schema) {
  if (schema.type === 'boolean') return ['true', 'false'];
  return Array.isArray(schema.enum) && schema.enum.every((/** @type {unknown} */ it) => typeof it === 'string') ? schema.enum : undefined;
}

/**
 * @param {string} name
 * @param {any} schema
 * @param {boolean} isRequired
 * @returns {import('./sheet.js').Field}
 */
function field(name, schema, isRequired) {
  const label = schema.title ?? name;
  const given = schema.default === undefined ? undefined : text(schema.default);
  const hint = [schema.title ? name : '', schema.description, range(schema), isRequired ? '' : 'optional'].filter(Boolean).join('; ');
  const options = choices(schema);
  if (options) return { name: key(name), label, type: 'choice', options: isRequired ? options : ['', ...options], value: given ?? (isRequired ? options[0] : ''), hint };
  if (schema.type === 'string') return { name: key(name), label, hint, value: given, required: isRequired };
  const isNumber = schema.type === 'integer' || schema.type === 'number';
  return { name: key(name), label, type: isNumber ? 'number' : 'json', hint: isNumber ? hint : [hint, 'JSON'].filter(Boolean).join('; '), value: given };
}

/** @param {any} schema */
function range({ minimum, maximum }) {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `at least ${minimum}`;
  return maximum === undefined ? '' : `at most ${maximum}`;
}

/** @param {unknown} value */
function text(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** @param {any} schema @param {string} name @param {string} typed */
function read(schema, name, typed) {
  if (schema.type === 'string') return typed;
  if (schema.type !== 'boolean' && choices(schema)) return typed;
  if (typed.trim() === '') throw new Error(`${schema.title ?? name} is missing`);
  return json(schema.title ?? name, typed);
}

/**
 * Writes the value of a form for a command; a value that cannot be read yet is a word for it.
 * @param {Form} form
 * @param {Values} values
 */
export function shown(form, values) {
  try {
    return JSON.stringify(form.value(values));
  } catch {
    return 'VALUE';
  }
}
