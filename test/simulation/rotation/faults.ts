import type { Fault } from '../faults.ts'

const folder = 'src/standalone/settings'

export const faults: readonly Fault[] = [
  {
    name: 'a change is believed at the first look',
    file: `${folder}/follow-file.ts`,
    code: 'const isSettled = print === seen',
    instead: 'const isSettled = true',
  },
  {
    name: 'a look follows at once if the one before took long',
    file: `${folder}/follow-file.ts`,
    code: 'clearTimeout(timer)\n',
    instead: '',
  },
  {
    name: 'no look follows soon after a signal',
    file: `${folder}/follow-file.ts`,
    code: 'isTold || !isSettled ? SETTLE_MS : lookMs',
    instead: '!isSettled ? SETTLE_MS : lookMs',
  },
  {
    name: 'two looks are under way at once',
    file: `${folder}/follow-file.ts`,
    code: 'latest = latest.then(() => look(isTold))',
    instead: 'void latest.then(() => look(isTold))',
  },
  {
    name: 'a half-written file is taken',
    file: `${folder}/follow-file.ts`,
    code: 'if (endedLine && !endsLine(found))',
    instead: 'if (found.length === 0)',
  },
  {
    name: 'a file that cannot be read ends the looks',
    file: `${folder}/follow-file.ts`,
    code: '.catch((error: unknown) => error as SettingError)',
    instead: '',
  },
  {
    name: 'a file that is wrong stays open',
    file: `${folder}/setting-file.ts`,
    code: '} finally {\n      await handle.close()',
    instead: 'await handle.close()\n    } finally {',
  },
  {
    name: 'a file that became shorter is read to its old end',
    file: `${folder}/setting-file.ts`,
    code: 'buffer.subarray(0, (await handle.read(buffer, 0, buffer.length, 0)).bytesRead)',
    instead: 'handle.read(buffer, 0, buffer.length, 0).then(() => buffer)',
  },
  {
    name: 'removed tokens hold on',
    file: `${folder}/rotation.ts`,
    code: 'held = found',
    instead: 'held = new Map([...held, ...found])',
  },
  {
    name: 'an empty file takes all tokens away',
    file: `${folder}/tokens.ts`,
    code: 'if (tokens.size === 0) throw',
    instead: "if (tokens.size === 0 && unit === 'entry') throw",
  },
  {
    name: 'the URL of another store holds although it is complained of',
    file: `${folder}/rotation.ts`,
    code: 'if (!isSameStore(current, found))',
    instead: 'const before = current\n    current = found\n    if (!isSameStore(before, found))',
  },
]
