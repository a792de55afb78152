// What early.js leaves for api.js, and what the build gives to early.js.
declare global {
  var early: Map<string, Promise<Response>> | undefined;
  var SCRIPTS: Record<string, string[]>;
}
export {};
