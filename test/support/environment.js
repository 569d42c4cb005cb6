// Removes variables of the caller's terminal and shell from the environment of this process, and so of the processes
// that it starts, so that no result depends on them: with FORCE_COLOR, for example, Node colors what programs print.

/** `NODE_TEST_CONTEXT` connects a test process to `node --test`. */
const KEPT = [
  ...['PATH', 'HOME', 'TMPDIR', 'NODE_COMPILE_CACHE', 'NODE_TEST_CONTEXT', 'NODE_V8_COVERAGE'],
  // What npm needs to reach its registry.
  ...['HTTPS_PROXY', 'https_proxy', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_DIR', 'SSL_CERT_FILE'],
  ...['npm_config_cache', 'npm_config_registry', 'npm_config_userconfig'],
]
const KEPT_PREFIXES = /^(?:TEST_|__STRYKER)/

for (const name of Object.keys(process.env)) {
  if (!KEPT.includes(name) && !KEPT_PREFIXES.test(name)) delete process.env[name]
}
