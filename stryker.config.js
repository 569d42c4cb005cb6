/** Changes the source in small ways, and shows the changes that no test notices. CONTRIBUTING says how to use it. */
export default {
  mutate: ['src/{http,plants}/**/*.ts', 'src/stores/{memory-store,sorted-plants}.ts', 'src/{options,plant-store}.ts'],
  testRunner: 'tap',
  tap: {
    // Those that start neither programs nor databases.
    testFiles: [
      'test/{contract,http,plants}/**/*.test.ts',
      'test/stores/{memory-store,sorted-plants}.test.ts',
      'test/{options,plant-store}.test.ts',
    ],
    nodeArgs: ['--import', 'tsx', '--test-reporter', 'tap'],
  },
  ignorePatterns: ['coverage', 'test/peers', 'bench/peers'],
  tempDirName: 'coverage/mutation',
  cleanTempDir: 'always',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 90 },
}
