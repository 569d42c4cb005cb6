import type { Faults } from '../faults.ts'

export const faults: Faults = {
  'src/standalone/settings/follow-file.ts': [
    ['a change is believed at the first look', 'const isSettled = print === seen', 'const isSettled = true'],
    ['a look follows at once if the one before took long', 'clearTimeout(timer)\n', ''],
    [
      'no look follows soon after a signal',
      'isTold || !isSettled ? SETTLE_MS : lookMs',
      '!isSettled ? SETTLE_MS : lookMs',
    ],
    [
      'two looks are under way at once',
      'latest = latest.then(() => look(isTold))',
      'void latest.then(() => look(isTold))',
    ],
    ['a half-written file is taken', 'if (endedLine && !endsWithNewline(found))', 'if (found.length === 0)'],
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
  'src/standalone/settings/rotation.ts': [
    ['the URL file is read at a signal only', '() => ({}), LOOK_MS', '() => ({}), 2 ** 30'],
    ['removed tokens hold on', 'held = found', 'held = new Map([...held, ...found])'],
    [
      'the URL of another store holds although it is complained of',
      'if (!isSameStore(current, found))',
      'const before = current\n    current = found\n    if (!isSameStore(before, found))',
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
