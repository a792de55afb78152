// Preact with htm: markup as tagged templates, checked by nothing but read as HTML. All text is escaped by Preact.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { Fragment, render } from "./vendor/preact.js";
export { useCallback, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);
