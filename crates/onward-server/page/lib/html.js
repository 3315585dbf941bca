// What every module of the page takes from the vendored libraries.

import { h, render, Fragment } from '../vendor/preact.js';
import { useEffect, useLayoutEffect, useRef, useState } from '../vendor/hooks.js';
import { signal } from '../vendor/signals.js';
import htm from '../vendor/htm.js';

/** Makes elements from a template. Texts are set as texts, never as HTML. */
export const html = htm.bind(h);

export { Fragment, render, signal, useEffect, useLayoutEffect, useRef, useState };
