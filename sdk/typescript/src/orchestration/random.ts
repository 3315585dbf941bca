/** Random numbers of an orchestration, which are the same in every replay. */

const MASK = (1n << 64n) - 1n;

/** The sequence of a seed (SplitMix64). */
export class DrawnNumbers {
  #state: bigint;

  constructor(seed: bigint) {
    this.#state = seed & MASK;
  }

  /** Returns 64 random bits. */
  draw(): bigint {
    this.#state = (this.#state + 0x9e3779b97f4a7c15n) & MASK;
    let mixed = ((this.#state ^ (this.#state >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return mixed ^ (mixed >> 31n);
  }
}

/** Returns a number from 0 to below 1 from 64 random bits. */
export function fractionOf(bits: bigint): number {
  return Number(bits >> 11n) / 2 ** 53;
}

/** Returns a UUID of version 4 from 128 random bits. */
export function uuidOf(high: bigint, low: bigint): string {
  const bits = (high << 64n) | low;
  const marked = (bits & ~(0xf000n << 64n) & ~(0xc000n << 48n)) | (0x4000n << 64n) | (0x8000n << 48n);
  const hex = marked.toString(16).padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
