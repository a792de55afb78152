// ESLint's own rules for mistakes; Prettier has the format.
const READ = (names) => Object.fromEntries(names.map((name) => [name, "readonly"]));
const BROWSER = `
  AbortController CSS CustomEvent Error Event File FormData Map MutationObserver ResizeObserver Set
  TextDecoder TextEncoder URL URLSearchParams addEventListener btoa cancelAnimationFrame clearInterval
  clearTimeout console crypto dispatchEvent document fetch getComputedStyle globalThis history innerHeight
  innerWidth localStorage location matchMedia navigator removeEventListener requestAnimationFrame
  sessionStorage scrollTo setInterval setTimeout AudioContext
`;

export default [
  { ignores: ["bundle/"] },
  {
    files: ["**/*.js", "**/*.jsx"],
    languageOptions: { parserOptions: { ecmaFeatures: { jsx: true } }, globals: READ(BROWSER.trim().split(/\s+/)) },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "constructor-super": "error",
      eqeqeq: ["error", "always"],
      "no-const-assign": "error",
      "no-dupe-args": "error",
      "no-dupe-keys": "error",
      "no-eval": "error",
      "no-fallthrough": "error",
      "no-implied-eval": "error",
      "no-import-assign": "error",
      "no-new-func": "error",
      "no-redeclare": "error",
      "no-self-assign": "error",
      "no-shadow-restricted-names": "error",
      "no-undef": "error",
      "no-unreachable": "error",
      "no-unsafe-finally": "error",
      "no-unsafe-optional-chaining": "error",
      "no-unused-vars": ["error", { caughtErrors: "none" }],
      "no-useless-assignment": "off",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "use-isnan": "error",
      "valid-typeof": "error",
    },
  },
];
