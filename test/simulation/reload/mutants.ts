import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/standalone/settings/watch-file.ts': [
    ['a change is believed at the first look', 'const isStable = fingerprint === lastSeen', 'const isStable = true'],
    ['a look follows at once if the one before took long', 'clearTimeout(timer)\n', ''],
    [
      'no look follows soon after a signal',
      'isForced || !isStable ? RECHECK_DELAY_MS : checkIntervalMs',
      '!isStable ? RECHECK_DELAY_MS : checkIntervalMs',
    ],
    [
      'two looks are under way at once',
      'latestCheck = latestCheck.then(() => check(isForced))',
      'void latestCheck.then(() => check(isForced))',
    ],
    ['a half-written file is taken', 'if (hadFinalNewline && !endsWithNewline(content))', 'if (content.length === 0)'],
    ['a rejected file does not show in the metrics', 'rejectedFiles.set(variable, true)', ''],
    ['a file shows as rejected for good', 'rejectedFiles.set(variable, false)\n      log', 'log'],
    ['a file that cannot be read ends the looks', '.catch((error: unknown) => error as SettingError)', ''],
  ],
  'src/standalone/settings/setting-file.ts': [
    ['a byte-order mark becomes a part of the URL', "content.startsWith('\\ufeff')", "content === ''"],
    ['bytes that are not UTF-8 are replaced', '!isUtf8(bytes)', 'bytes.length > 2 ** 20'],
    ['only the first line of a file is read', "line.includes('\\n')", "line.split('\\n').length > 2"],
    [
      'a file that is wrong stays open',
      '} finally {\n      await handle.close()',
      'await handle.close()\n    } finally {',
    ],
    [
      'a file that became shorter is read to its old end',
      'buffer.subarray(0, (await handle.read(buffer, 0, buffer.length, 0)).bytesRead)',
      'handle.read(buffer, 0, buffer.length, 0).then(() => buffer)',
    ],
  ],
  'src/standalone/settings/reload.ts': [
    ['the URL file is read at a signal only', '() => ({}), CHECK_INTERVAL_MS', '() => ({}), 2 ** 30'],
    [
      'removed tokens hold on',
      'currentTokens = newTokens',
      'currentTokens = new Map([...currentTokens, ...newTokens])',
    ],
    [
      'the URL of another store holds although it is complained of',
      'if (!isSameStore(currentUrl, newUrl))',
      'const before = currentUrl\n    currentUrl = newUrl\n    if (!isSameStore(before, newUrl))',
    ],
  ],
  'src/standalone/settings/tokens.ts': [
    [
      'an empty file takes all tokens away',
      'if (tokens.size === 0) throw',
      "if (tokens.size === 0 && unit === 'entry') throw",
    ],
  ],
}
