/** Payloads: from values to bytes and back, checked by schemas. */

import { isUtf8 } from "node:buffer";
import { PayloadError } from "../errors.js";
import type { Issue, Schema, Validation } from "../schema.js";
import { bytes } from "../schema.js";

/** The largest number of issues of a schema that an error names. */
const ISSUES = 5;

/**
 * Returns a value as a payload: a Uint8Array as it is, everything else as JSON; `undefined` is
 * `null`.
 *
 * Throws PayloadError if the value has no JSON form.
 */
export function encodePayload(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (value === undefined) return Buffer.from("null");
  if (value instanceof Map || value instanceof Set) {
    throw new PayloadError(`a ${value.constructor.name} has no JSON form; convert it to an object or array`);
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new PayloadError(`${value} has no JSON form; use null`);
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new PayloadError(`the value has no JSON form: ${(error as Error).message}`, { cause: error });
  }
  if (text === undefined) throw new PayloadError(`a ${typeof value} has no JSON form`);
  return Buffer.from(text);
}

/** Returns the JSON value of a payload; null if it is empty. */
export function decodeJson(payload: Uint8Array): unknown {
  if (payload.length === 0) return null;
  const data = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  if (!isUtf8(data)) throw new PayloadError("the payload is not JSON: it is not UTF-8");
  try {
    return JSON.parse(data.toString("utf8"));
  } catch (error) {
    throw new PayloadError(`the payload is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** Returns a payload as the schema reads it; a promise if the schema validates asynchronously. */
export function readPayload(payload: Uint8Array, schema: Schema<unknown, unknown> | undefined): unknown {
  if (schema === bytes) return payload;
  const value = decodeJson(payload);
  return schema === undefined ? value : validate(value, schema, "the payload");
}

/**
 * Returns a value as the schema returns it, or a promise of that.
 *
 * Throws PayloadError that names `what` and the issues.
 */
export function validate(value: unknown, schema: Schema<unknown, unknown>, what: string): unknown {
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then((found) => valueIn(found, what)) : valueIn(result, what);
}

/** Does what `validate` does, for a schema that does not validate asynchronously. */
export function validateSync(value: unknown, schema: Schema<unknown, unknown>, what: string): unknown {
  const result = validate(value, schema, what);
  if (result instanceof Promise) {
    result.catch(() => {});
    throw new PayloadError(`the schema of ${what} validates asynchronously, which is not possible here`);
  }
  return result;
}

function valueIn(result: Validation<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const texts = result.issues.slice(0, ISSUES).map(issueText);
  const more = result.issues.length > ISSUES ? `; and ${result.issues.length - ISSUES} more` : "";
  throw new PayloadError(`${what} is not valid: ${texts.join("; ")}${more}`);
}

function issueText(issue: Issue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return path.length > 0 ? `${path.join(".")}: ${issue.message}` : issue.message;
}
