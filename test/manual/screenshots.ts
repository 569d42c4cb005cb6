// Takes the screenshots of the web UI in the README.
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openAsAda } from '../support/page/web-ui-page.ts'
import { startProgram } from '../support/program/program.ts'

const PLANTS = [
  ['1', 'Monstera deliciosa', 'tropical'],
  ['2', 'نخلة التمر', 'desert'],
  ['3', 'Ginkgo biloba', 'hardy'],
  ['9007199254740993', 'Sequoiadendron giganteum', 'old'],
] as const

test('takes the screenshots for the README', async (t) => {
  const { url } = await startProgram(t, { PORT: '3000' })
  const plantPage = await openAsAda(t, url)
  await plantPage.page.setViewport({ width: 1280, height: 720 })
  for (const [id, name, tag] of PLANTS) await plantPage.createPlant(id, name, tag)
  await plantPage.openLogEntry(2)
  await plantPage.evaluate(`document.querySelector('#new-name').focus()`)
  for (const scheme of ['light', 'dark'] as const) {
    await plantPage.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    const path = fileURLToPath(new URL(`../../docs/page-${scheme}.png`, import.meta.url))
    await plantPage.page.screenshot({ path })
  }
})
