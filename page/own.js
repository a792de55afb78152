// Maps by names that come from outside. A name such as `constructor` or `__proto__` must be a name like any other.

/**
 * The names and values of an object of the API's answers, as a Map.
 * @template T
 * @param {Record<string, T> | null | undefined} object
 * @returns {Map<string, T>}
 */
export const mapOf = (object) => new Map(Object.entries(object ?? {}));

/**
 * The object's own value of this name; undefined where the object has none, whatever the name is.
 * @template T
 * @param {Record<string, T> | null | undefined} object
 * @param {string} name
 * @returns {T | undefined}
 */
export const own = (object, name) => (object && Object.hasOwn(object, name) ? object[name] : undefined);
