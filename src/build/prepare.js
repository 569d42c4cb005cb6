// Builds dist if it's missing, because npm, pnpm and Yarn run only `prepare` when they install the package from git.
import { execSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

// `npm ci` installs a checkout, where the scripts that need dist build it themselves.
if (process.env.npm_command !== 'ci' && !existsSync('dist/index.cjs')) {
  if (['typescript', 'esbuild', '@types/node'].every(isInstalled))
    execSync('npm run build --silent', { stdio: 'inherit' })
  // Without development dependencies (`--omit=dev`) an install still has to succeed.
  else console.error('plant-store: not built, because its development dependencies are not installed')
}

function isInstalled(name) {
  try {
    return createRequire(import.meta.url).resolve(`${name}/package.json`) !== ''
  } catch {
    return false
  }
}
