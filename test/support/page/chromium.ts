import { spawnSync } from 'node:child_process'
import { launch, type Browser } from 'puppeteer-core'
import { isRunElsewhere } from '../requirements.ts'

const { TEST_CHROMIUM, TEST_REQUIRE_ALL } = process.env
const found = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(
  (name) => `command -v ${name}`,
)
const chromium = TEST_CHROMIUM ?? spawnSync('sh', ['-c', found.join(' || ')], { encoding: 'utf8' }).stdout.trim()

/** Why a test is skipped that takes a browser. */
export const needsChromium: string | false =
  isRunElsewhere || (chromium === '' && 'install Chromium, or set TEST_CHROMIUM to its path')

if (chromium === '' && TEST_REQUIRE_ALL === '1') throw new Error('TEST_REQUIRE_ALL is set, and there is no Chromium')

export function launchChromium(): Promise<Browser> {
  if (chromium === '') throw new Error('There is no Chromium')
  // The sandbox refuses to run as root, as in most containers; the only page is ours.
  return launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
