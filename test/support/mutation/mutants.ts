import ts from 'typescript'

/** What is changed in a file, wherever it stands there. */
export interface Change {
  /** The path of the file. */
  readonly file: string
  /** The first line of what is changed, and what becomes of it. */
  readonly original: string
  readonly mutated: string
}

/** A change of a source file that a test should notice. */
export interface Mutant extends Change {
  /** Where the change is, counted from 1. */
  readonly line: number
  /** The whole file with the change. */
  readonly source: string
}

type Replacement = readonly [start: number, end: number, text: string]

const { SyntaxKind } = ts

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '+=': ['-='],
  '-=': ['+='],
  '|=': ['&='],
  '??=': ['='],
}

const CALLS: Readonly<Record<string, string>> = {
  min: 'max',
  max: 'min',
  some: 'every',
  every: 'some',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  toLowerCase: 'toUpperCase',
  toUpperCase: 'toLowerCase',
  floor: 'ceil',
  ceil: 'floor',
}

/** All mutants of a file, from its top to its bottom. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true)
  const mutants: Mutant[] = []

  function visit(node: ts.Node): void {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return
    for (const change of changesOf(node, tree)) {
      const [start, end, text] = change
      if (source.slice(start, end) !== text) mutants.push(mutantOf(change))
    }
    ts.forEachChild(node, visit)
  }

  function mutantOf([start, end, text]: Replacement): Mutant {
    const lineStart = source.lastIndexOf('\n', start - 1) + 1
    const lineEnd = (at: number): number => (source.indexOf('\n', at) + 1 || source.length + 1) - 1
    return {
      file,
      line: tree.getLineAndCharacterOfPosition(start).line + 1,
      original: source.slice(lineStart, lineEnd(start)).trim(),
      mutated: (source.slice(lineStart, start) + text + source.slice(end, lineEnd(end))).trim(),
      source: source.slice(0, start) + text + source.slice(end),
    }
  }

  visit(tree)
  return mutants
}

/** What is changed at a node itself; its children come by themselves. */
function changesOf(node: ts.Node, tree: ts.SourceFile): Replacement[] {
  const at = (part: ts.Node, ...texts: readonly string[]): Replacement[] =>
    texts.map((text) => [part.getStart(tree), part.end, text])

  if (ts.isBinaryExpression(node)) {
    const { left, operatorToken, right } = node
    const operator = operatorToken.getText()
    const changes = at(operatorToken, ...(OPERATORS[operator] ?? []))
    if (operator === '&&') changes.push(...at(left, 'true'), ...at(right, 'true'))
    if (operator === '||') changes.push(...at(left, 'false'), ...at(right, 'false'))
    return changes
  }
  if (ts.isIfStatement(node)) return at(node.expression, 'true', 'false')
  if (ts.isConditionalExpression(node)) return at(node.condition, 'true', 'false')
  // A loop without end takes long to notice, and always is.
  if (ts.isWhileStatement(node) || ts.isDoStatement(node)) return at(node.expression, 'false')
  if (ts.isForStatement(node) && node.condition !== undefined) return at(node.condition, 'false')
  if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) return at(node, ...changedUnary(node))
  if (node.kind === SyntaxKind.TrueKeyword) return at(node, 'false')
  if (node.kind === SyntaxKind.FalseKeyword) return at(node, 'true')
  if (ts.isStringLiteralLike(node)) return isName(node) ? [] : at(node, node.text === '' ? "'mutant'" : "''")
  if (ts.isTemplateExpression(node)) return at(node, '``')
  if (ts.isRegularExpressionLiteral(node)) return changedAnchors(node.text).flatMap((text) => at(node, text))
  if (ts.isArrayLiteralExpression(node)) return node.elements.length === 0 ? [] : at(node, '[]')
  if (ts.isObjectLiteralExpression(node)) return node.properties.length === 0 ? [] : at(node, '{}')
  if (node.kind === SyntaxKind.QuestionDotToken) {
    return at(node, ts.isPropertyAccessExpression(node.parent) ? '.' : '')
  }
  if (ts.isPropertyAccessExpression(node) && ts.isCallExpression(node.parent) && node.parent.expression === node) {
    const { text } = node.name
    return Object.hasOwn(CALLS, text) ? at(node.name, CALLS[text]!) : []
  }
  if (ts.isExpressionStatement(node) || ts.isThrowStatement(node)) return at(node, ';')
  if (ts.isReturnStatement(node)) {
    return node.expression === undefined ? at(node, ';') : at(node.expression, 'undefined')
  }
  if (ts.isBlock(node) && ts.isFunctionLike(node.parent)) return node.statements.length < 2 ? [] : at(node, '{}')
  return []
}

function changedUnary({ operator, operand }: ts.PrefixUnaryExpression | ts.PostfixUnaryExpression): string[] {
  const text = operand.getText()
  if (operator === SyntaxKind.PlusPlusToken) return [`--${text}`]
  if (operator === SyntaxKind.MinusMinusToken) return [`++${text}`]
  return [text]
}

/** A string in the place of a name, or of the name of a module. */
function isName({ parent }: ts.Node): boolean {
  return ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent) || ts.isMethodDeclaration(parent)
    ? parent.name.kind === SyntaxKind.StringLiteral
    : ts.isLiteralTypeNode(parent) || ts.isImportAttribute(parent)
}

function changedAnchors(regex: string): string[] {
  return [regex.replace(/^\/\^/, '/'), regex.replace(/\$(\/[a-z]*)$/, '$1')].filter((text) => text !== regex)
}
