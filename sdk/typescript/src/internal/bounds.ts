/** Checks of names and times against the bounds of the protocol. */

/** The longest name of a kind or queue, in bytes. */
export const NAME_BYTES = 128;

/** The longest key of a task, in bytes. */
export const KEY_BYTES = 512;

/** The largest number of tags of a task. */
export const TAGS = 32;

/** The largest `limit` of a kind. */
export const LIMIT = 65_536;

/** Returns a name if its length is within the bound. */
export function checkName(name: string, value: string, longest = NAME_BYTES): string {
  const size = typeof value === "string" ? Buffer.byteLength(value) : 0;
  if (size < 1 || size > longest) {
    throw new RangeError(`${name} has ${size} bytes; it must be a text of 1 to ${longest}`);
  }
  return value;
}

/** Returns an integer if it is within its bounds. */
export function checkInteger(
  name: string,
  value: number,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `from ${least} to ${most}`;
    throw new RangeError(`${name} is ${value}; it must be an integer ${range}`);
  }
  return value;
}

/** Returns a time in whole milliseconds if it is at least `least`. */
export function checkMs(name: string, value: number, least: number): number {
  const rounded = Math.round(value);
  if (!Number.isSafeInteger(rounded) || rounded < least) {
    throw new RangeError(`${name} is ${value}; it must be at least ${least} ms`);
  }
  return rounded;
}

/** Returns a text cut to a number of bytes of UTF-8, at a character. */
export function cut(text: string, longest: number): string {
  if (text.length * 3 <= longest || Buffer.byteLength(text) <= longest) return text;
  const data = Buffer.from(text);
  let end = longest - 3;
  // A byte 10xxxxxx continues a character.
  while (end > 0 && ((data[end] as number) & 0xc0) === 0x80) end -= 1;
  return `${data.toString("utf8", 0, end)}…`;
}
