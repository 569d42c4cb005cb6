import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/standalone/settings/watch-file.ts': [
    ['a change is applied at the first check', 'const isStable = fingerprint === lastSeen', 'const isStable = true'],
    ['the next check follows immediately after a slow one', 'clearTimeout(timer)\n', ''],
    [
      'no recheck follows soon after a signal',
      'isForced || !isStable ? RECHECK_DELAY_MS : checkIntervalMs',
      '!isStable ? RECHECK_DELAY_MS : checkIntervalMs',
    ],
    [
      'two checks run concurrently',
      'latestCheck = latestCheck.then(() => check(isForced))',
      'void latestCheck.then(() => check(isForced))',
    ],
    [
      'a half-written file is applied',
      'if (hadFinalNewline && !endsWithNewline(content))',
      'if (content.length === 0)',
    ],
    ['the metric does not show a rejected file', 'rejectedFiles.set(variable, true)', ''],
    ['the metric shows a file as rejected forever', 'rejectedFiles.set(variable, false)\n      log', 'log'],
    ['an unreadable file ends the checks', '.catch((error: unknown) => error as SettingError)', ''],
  ],
  'src/standalone/settings/setting-file.ts': [
    ['a byte-order mark becomes part of the URL', "content.startsWith('\\ufeff')", "content === ''"],
    ['invalid UTF-8 is replaced', '!isUtf8(bytes)', 'bytes.length > 2 ** 20'],
    ['only the first line of a file is read', "line.includes('\\n')", "line.split('\\n').length > 2"],
    [
      'an invalid file is not closed',
      '} finally {\n      await handle.close()',
      'await handle.close()\n    } finally {',
    ],
    [
      'a file that became shorter is read to its old size',
      'buffer.subarray(0, (await handle.read(buffer, 0, buffer.length, 0)).bytesRead)',
      'handle.read(buffer, 0, buffer.length, 0).then(() => buffer)',
    ],
  ],
  'src/standalone/settings/reload.ts': [
    ['the URL file is only reread after a signal', '() => ({}), CHECK_INTERVAL_MS', '() => ({}), 2 ** 30'],
    [
      'removed tokens remain valid',
      'currentTokens = newTokens',
      'currentTokens = new Map([...currentTokens, ...newTokens])',
    ],
    [
      'the URL of another store is applied although it is rejected',
      'if (!isSameStore(currentUrl, newUrl))',
      'const before = currentUrl\n    currentUrl = newUrl\n    if (!isSameStore(before, newUrl))',
    ],
  ],
  'src/standalone/settings/tokens.ts': [
    [
      'an empty file removes all tokens',
      'if (tokens.size === 0) throw',
      "if (tokens.size === 0 && unit === 'entry') throw",
    ],
  ],
}
