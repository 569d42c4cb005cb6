// The main module of a process that runs several test files: node test/support/import-files.js <file>...
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

for (const file of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(file).href)
  } catch (error) {
    test(`${file} can be loaded`, () => {
      throw error
    })
  }
}
