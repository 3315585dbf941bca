// Numbers, times and texts, as people read them.

const COUNT = new Intl.NumberFormat('en');

/** @param {number} number */
export function count(number) {
  return COUNT.format(number).replaceAll(',', '\u202f');
}

/**
 * Writes a number with its noun.
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/**
 * Writes a duration in its two largest units.
 * @param {number} milliseconds
 */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes < 10 && seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return hours < 10 && minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/**
 * Writes a duration with a tenth of a second if it is short, for those that are compared.
 * @param {number} milliseconds
 */
export function precise(milliseconds) {
  return milliseconds >= 1000 && milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(1)} s` : duration(milliseconds);
}

/**
 * Writes a time relative to another one.
 * @param {string} at
 * @param {number} from
 */
export function relative(at, from) {
  const difference = from - Date.parse(at);
  if (Math.abs(difference) < 1000) return 'now';
  return difference > 0 ? `${duration(difference)} ago` : `in ${duration(-difference)}`;
}

/**
 * Writes a time exactly: in the zone of the viewer, and in UTC.
 * @param {string} at
 */
export function exact(at) {
  const time = new Date(at);
  return `${time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}\n${time.toISOString()}`;
}

/**
 * Quotes a text for a shell.
 * @param {string} text
 */
export function quote(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Writes a rate per second.
 * @param {number} perSecond
 */
export function rate(perSecond) {
  if (perSecond === 0) return '0/s';
  return perSecond >= 10 ? `${count(Math.round(perSecond))}/s` : `${perSecond.toFixed(1)}/s`;
}

const UNITS = /** @type {Record<string, number>} */ ({ d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 0.001, 'µs': 0.001, ns: 1e-6 });

/**
 * Reads a duration of the API, such as `1h30m` or `229ms0.493ms`.
 * @param {string} text
 */
export function milliseconds(text) {
  const parts = [...text.matchAll(/([\d.]+)\s*(ms|us|µs|ns|[dhms])/g)];
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS[unit ?? ''] ?? 0), 0);
}
