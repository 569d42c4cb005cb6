import { keeping, keepingText, listing, type BrokenStore } from './sorting-store.ts'

/** Keeps no empty name and no empty tag. */
export const TextLosingStore = keepingText((text) => (text === '' ? (undefined as unknown as string) : text))

/** Stores that change texts. */
export const WRONG_TEXTS: readonly BrokenStore[] = [
  {
    breaks: 'makes an absent tag null',
    Store: listing((list, page) => list(page).map((plant) => ({ ...plant, tag: plant.tag ?? null }))),
    fails: 'keeps an absent tag absent and an empty tag empty',
    says: 'must return no tag, or undefined, if the plant has none.',
  },
  {
    breaks: 'drops an empty tag',
    Store: keeping(({ id, name, tag }) => ({ id, name, tag: tag === '' ? undefined : tag })),
    fails: 'keeps an absent tag absent and an empty tag empty',
    says: 'must return tags to the letter.',
  },
  {
    breaks: 'takes an empty text for none',
    Store: TextLosingStore,
    fails: 'keeps an absent tag absent and an empty tag empty',
    says: 'must return tags to the letter. That of 2n is undefined, and must be "".',
  },
  {
    breaks: 'normalises texts',
    Store: keepingText((text) => text.normalize()),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'trims texts',
    Store: keepingText((text) => text.trim()),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'turns line breaks into \\n',
    Store: keepingText((text) => text.replace(/\r\n?/g, '\n')),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'skips a byte order mark',
    Store: keepingText((text) => new TextDecoder().decode(Buffer.from(text))),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'keeps three bytes of a character',
    Store: keepingText((text) => text.replace(/[^\0-\uffff]/gu, '\ufffd')),
    fails: 'keeps every character of Unicode but U+0000',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'drops private characters',
    Store: keepingText((text) => text.replace(/\p{Private_Use}/gu, '')),
    fails: 'keeps every character of Unicode but U+0000',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'cuts texts at 32 KiB',
    Store: keepingText((text) => text.slice(0, 32_768)),
    fails: 'keeps names and tags of 60 KB',
    says: 'must return names to the letter.',
  },
]
