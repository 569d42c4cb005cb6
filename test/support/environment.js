// The environment of tests and of the processes they start. It excludes the variables of the caller's terminal and
// shell, so that no result depends on them: with FORCE_COLOR, for example, Node colors what programs print.

/** `NODE_TEST_CONTEXT` connects a test process to `node --test`. The test packages remove it from their processes. */
const KEPT = [
  ...['PATH', 'HOME', 'TMPDIR', 'NODE_COMPILE_CACHE', 'NODE_TEST_CONTEXT', 'NODE_V8_COVERAGE'],
  // What npm needs to reach its registry.
  ...['HTTPS_PROXY', 'https_proxy', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_DIR', 'SSL_CERT_FILE'],
  ...['npm_config_cache', 'npm_config_registry', 'npm_config_userconfig'],
]
const KEPT_PREFIXES = /^(?:TEST_|__STRYKER)/

/** Returns the variables of an environment that the tests and their child processes may depend on. */
export function selectEnvironment(environment) {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => KEPT.includes(name) || KEPT_PREFIXES.test(name)),
  )
}

/** Removes all other variables from the environment of this process, which the processes that it starts inherit. */
export function cleanEnvironment() {
  const kept = selectEnvironment(process.env)
  for (const name of Object.keys(process.env)) if (!(name in kept)) delete process.env[name]
}
