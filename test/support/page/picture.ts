// Makes the pictures of the page for people that the README shows.
import { fileURLToPath } from 'node:url'
import { launchChromium } from './chromium.ts'
import { Program } from '../program/program.ts'

const PLANTS = [
  ['1', 'Monstera deliciosa', 'tropical'],
  ['2', 'نخلة التمر', 'desert'],
  ['3', 'Ginkgo biloba', 'hardy'],
  ['9223372036854775807', 'Sequoiadendron giganteum', 'old'],
] as const

const program = new Program({ PORT: '3000' })
const browser = await launchChromium()
try {
  const address = await program.stdout.find((line) => line.includes('#token='))
  if (address === undefined) throw new Error(`The program did not start: ${program.stderr.all.join('\n')}`)
  const page = await browser.newPage()
  await page.setViewport({ width: 1120, height: 985 })
  await page.goto(address.trim())
  for (const [index, values] of PLANTS.entries()) {
    for (const [at, label] of ['Id', 'Name', 'Tag (optional)'].entries()) {
      await page.locator(`#create ::-p-aria(${label})`).fill(values[at]!)
    }
    await page.locator('#create ::-p-aria([name="Create"][role="button"])').click()
    const count = index === 0 ? '1 plant' : `${index + 1} plants`
    await page.waitForFunction(`document.querySelector('#list .result').textContent.includes(': ${count}.')`)
  }
  await page.evaluate('document.activeElement.blur()')
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    await page.screenshot({
      path: fileURLToPath(new URL(`../../docs/page-${scheme}.png`, import.meta.url)),
    })
  }
} finally {
  await browser.close()
  await program.end()
}
