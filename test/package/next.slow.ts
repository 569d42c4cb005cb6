import { test } from 'node:test'
import { readDocument } from '../support/documents.ts'
import { findPrograms } from '../support/programs.ts'
import { skipWithoutPeers } from '../support/extra-packages.ts'
import { createProject, runScript } from '../support/packed-package.ts'
import { addTestOwners, checkFramework, toFramework } from './check-framework.ts'

const EXAMPLES = findPrograms(readDocument('docs/frameworks.md'))
  .filter(({ heading }) => heading === 'Next.js')
  .map(({ code }) => code)

test('Next.js', { skip: skipWithoutPeers, timeout: 300_000 }, async (t) => {
  const server = EXAMPLES.find((code) => !code.startsWith('// '))!
  const routes = EXAMPLES.filter((code) => code !== server)
  const files = routes.map((code) => [/^\/\/ (.*)\n/.exec(code)![1]!, addTestOwners(code)] as const)
  const page = "export default function Page() { return 'Welcome.' }"
  const project = await createProject(t, { ...Object.fromEntries(files), 'pages/index.js': page })
  await runScript('next build', project, { NEXT_TELEMETRY_DISABLED: '1' })

  const custom = { ...toFramework('Next.js', server, '/api'), hasFallback: undefined }
  await t.test('in a custom server', (t) => checkFramework(t, custom, project))
  for (const [path] of files) {
    // Moves the service of the custom server to another path, so that the route responds.
    const code = server.replace('/api', '/elsewhere')
    const isFetch = path.startsWith('app/')
    const route = { ...custom, code, prefix: isFetch ? '/rest' : '/api', rejectsEscapes: true, isFetch }
    await t.test(path, (t) => checkFramework(t, route, project))
  }
})
