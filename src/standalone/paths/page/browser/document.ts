/** The maximum number of characters of a name to show. Rendering very long strings is slow. */
const MAX_NAME = 100

/**
 * The text that was last set on each element. The document may show a different text, because browser translation
 * replaces text nodes.
 */
const texts = new WeakMap<Element, string>()

export function find(selector: string, within: ParentNode = document): HTMLElement {
  return within.querySelector<HTMLElement>(selector)!
}

export function findField(id: string): HTMLInputElement {
  return find(`#${id}`) as HTMLInputElement
}

export function cloneTemplate(selector: string): HTMLElement {
  return document.importNode((find(selector) as HTMLTemplateElement).content, true).firstElementChild as HTMLElement
}

/**
 * Sets an element's text if it has changed. Setting the same text again would make screen readers repeat it, and
 * translators translate it again.
 */
export function setText(element: HTMLElement, text: string): HTMLElement {
  if (texts.get(element) === text) return element
  texts.set(element, text)
  // Because of the capture group, every part with an odd index is a quoted name or id.
  const parts = text.split(/(\u2068[^\u2069]*\u2069)/).map((part, index) => {
    if (index % 2 === 0) return part
    return Object.assign(document.createElement('span'), { textContent: part, translate: false })
  })
  element.replaceChildren(...parts)
  return element
}

/** Restores an element's text, which a translator may have replaced, and selects it. */
export function selectText(element: HTMLElement, text: string): void {
  texts.delete(element)
  getSelection()?.selectAllChildren(setText(element, text))
}

/** Replaces an element's children. Doesn't move the children that remain, so that they keep the focus. */
export function replaceChildren(parent: HTMLElement, children: readonly HTMLElement[]): void {
  for (const child of [...parent.children]) if (!children.includes(child as HTMLElement)) child.remove()
  for (const [index, child] of children.entries()) {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null)
  }
}

/** Creates an element for a plant's name or tag, with its own writing direction. Long names and tags are collapsed. */
export function createText(text: string): HTMLElement {
  const isLong = text.length > MAX_NAME
  const element = Object.assign(document.createElement(isLong ? 'details' : 'span'), { dir: 'auto' })
  if (isLong) element.append(Object.assign(document.createElement('summary'), { textContent: cut(text, MAX_NAME) }))
  element.append(text)
  return element
}

/**
 * Marks a plant's name or id in a message, so that it isn't translated and its writing direction doesn't affect the
 * rest of the message.
 */
export function quote(text: string | bigint): string {
  return `\u2068${showMarks(cut(String(text), MAX_NAME))}\u2069`
}

/** Replaces bidirectional control characters with JSON escapes, because they would reorder the surrounding text. */
export function showMarks(text: string): string {
  return text.replace(/\p{Bidi_Control}/gu, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  // Don't split a surrogate pair.
  const start = text.slice(0, max).replace(/[\ud800-\udbff]$/, '')
  return `${start} … and ${(text.length - start.length).toLocaleString('en')} more characters`
}
