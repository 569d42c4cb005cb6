// Builds dist if it's missing. When npm, pnpm or Yarn installs the package from git, `prepare` is the only script that
// each of them runs.
import { execSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

// `npm ci` runs in a checkout, where each script that needs dist builds it.
if (process.env.npm_command !== 'ci' && !existsSync('dist/index.js')) {
  if (['typescript', '@types/node'].every(isInstalled)) execSync('npm run build --silent', { stdio: 'inherit' })
  // An install without development dependencies (`--omit=dev`) must still succeed.
  else console.error('plant-store: dist was not built, because the development dependencies are not installed')
}

function isInstalled(name) {
  try {
    return createRequire(import.meta.url).resolve(`${name}/package.json`) !== ''
  } catch {
    return false
  }
}
