import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { launch, type Browser } from 'puppeteer-core'
import { isRunElsewhere } from '../requirements.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

const chromium = findChromium()

/** Why a test is skipped that takes a browser. */
export const needsChromium: string | false =
  isRunElsewhere || (chromium === undefined && 'install Chromium, or set TEST_CHROMIUM to its path')

if (chromium === undefined && process.env['TEST_REQUIRE_ALL'] === '1') {
  throw new Error('TEST_REQUIRE_ALL is set, and there is no Chromium')
}

function findChromium(): string | undefined {
  const { PATH = '', TEST_CHROMIUM: path } = process.env
  const paths = PATH.split(delimiter).flatMap((directory) => NAMES.map((name) => join(directory, name)))
  return path ?? paths.find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export function launchChromium(): Promise<Browser> {
  if (chromium === undefined) throw new Error('There is no Chromium')
  // The sandbox refuses to run as root, as in most containers; the only page is ours.
  return launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
