import type { Page } from './puppeteer.ts'

/**
 * Translates a page as a browser's translator does: replaces each text node with `font` elements, including text that
 * the page adds later. The translation has Persian digits and is enclosed in angle brackets.
 * @param page the page
 * @param ignoresNoTranslate whether to ignore `translate="no"`, as some extensions do
 */
export async function translatePage(page: Page, ignoresNoTranslate = false): Promise<void> {
  await page.evaluate(ignoresNoTranslate ? TRANSLATOR_SCRIPT.replace(', [translate=no]', '') : TRANSLATOR_SCRIPT)
}

/** Returns the translation of a text, as {@link translatePage} displays it. */
export function translate(text: string): string {
  return `‹${text.replace(/\d/g, (digit) => String.fromCharCode(0x6f0 + Number(digit)))}›`
}

const TRANSLATOR_SCRIPT = `(() => {
  const translate = ${String(translate)}
  function translateUnder(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
    const nodes = root.nodeType === Node.TEXT_NODE ? [root] : []
    while (walker.nextNode()) nodes.push(walker.currentNode)
    for (const node of nodes) {
      if (node.data.trim() === '' || node.parentElement === null || node.parentElement.closest('script, style, font, [translate=no]')) continue
      const [outer, inner] = [document.createElement('font'), document.createElement('font')]
      inner.textContent = translate(node.data.trim())
      outer.append(inner)
      node.replaceWith(outer)
    }
  }
  // Google's translator adds a form to the page.
  const form = Object.assign(document.createElement('form'), { id: 'goog-gt-votingForm' })
  form.append(Object.assign(document.createElement('input'), { id: 'goog-gt-votingInputSrcLang' }))
  document.body.append(form)
  document.documentElement.lang = 'fa'
  document.documentElement.classList.add('translated-rtl')
  translateUnder(document.body)
  new MutationObserver((records) => {
    for (const { target, addedNodes } of records) {
      if (target.nodeType === Node.TEXT_NODE) translateUnder(target)
      for (const node of addedNodes) translateUnder(node)
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true })
})()`
