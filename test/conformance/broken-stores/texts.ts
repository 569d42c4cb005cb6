import { found, keeping, keepingText, listing, SAYS, type BrokenStore } from './sorting-store.ts'

/** Stores that change texts. */
export const WRONG_TEXTS: readonly BrokenStore[] = [
  ...found(
    'keeps an absent tag absent and an empty tag empty',
    listing('makes an absent tag null', SAYS.noTag, (list, page) => {
      return list(page).map((plant) => ({ ...plant, tag: plant.tag ?? null }))
    }),
    keeping('drops an empty tag', SAYS.tags, ({ id, name, tag }) => ({ id, name, tag: tag === '' ? undefined : tag })),
    keepingText(
      'takes an empty text for none',
      `${SAYS.tags} That of 2n is undefined, and must be "".`,
      (text) => text || (undefined as unknown as string),
    ),
  ),
  ...found(
    'keeps names and tags to the letter',
    keepingText('normalises texts', SAYS.names, (text) => text.normalize()),
    keepingText('trims texts', SAYS.names, (text) => text.trim()),
    keepingText('turns line breaks into \\n', SAYS.names, (text) => text.replace(/\r\n?/g, '\n')),
    keepingText('skips a byte order mark', SAYS.names, (text) => new TextDecoder().decode(Buffer.from(text))),
  ),
  ...found(
    'keeps every character of Unicode but U+0000',
    keepingText('keeps three bytes of a character', SAYS.names, (text) => text.replace(/[^\0-\uffff]/gu, '\ufffd')),
    keepingText('drops private characters', SAYS.names, (text) => text.replace(/\p{Private_Use}/gu, '')),
  ),
  ...found(
    'keeps names and tags of 60 KB',
    keepingText('cuts texts at 32 KiB', SAYS.names, (text) => text.slice(0, 32_768)),
  ),
]
