export function find(selector: string, within: ParentNode = document): HTMLElement {
  return within.querySelector<HTMLElement>(selector)!
}

export function cloneTemplate(id: string): HTMLElement {
  return document.importNode((find(`#${id}`) as HTMLTemplateElement).content, true).firstElementChild as HTMLElement
}

/** Sets an element's text if it has changed. Setting the same text again would make screen readers repeat it. */
export function setText(element: HTMLElement, text: string): HTMLElement {
  if (element.textContent !== text) element.textContent = text
  return element
}

/** Shortens a text, because browsers render very long texts slowly. */
export function cut(text: string, max: number): string {
  // Don't split a surrogate pair.
  return text.length <= max ? text : `${text.slice(0, max).replace(/[\ud800-\udbff]$/, '')} …`
}
