/** Mutation testing: reports small changes to the source that no test detects. CONTRIBUTING.md explains how to use it. */
export default {
  mutate: ['src/{http,plants}/*.ts', 'src/stores/memory-store.ts', 'src/{operations,options,plant-store}.ts'],
  testRunner: 'tap',
  tap: {
    testFiles: ['test/{contract,http}/*.test.ts'],
    nodeArgs: ['--import', 'tsx', '--test-reporter', 'tap'],
  },
  ignorePatterns: ['coverage', 'test/peers/projects', 'test/tools'],
  tempDirName: 'coverage/mutation',
  cleanTempDir: 'always',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 90 },
}
