import ts from 'typescript'
import type { Mutant } from './mutants.ts'

/** Makes a function that says whether the compiler takes a mutant. */
export function createCompiler(): (mutant: Mutant) => boolean {
  const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(
    'tsconfig.json',
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: throwDiagnostic },
  )!
  const sources = new Map<string, ts.SourceFile | undefined>()
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile.bind(host)
  let program: ts.Program | undefined
  let mutant: { path: string; source: ts.SourceFile } | undefined
  host.getSourceFile = (path, languageVersion) => {
    if (path === mutant?.path) return mutant.source
    if (!sources.has(path)) sources.set(path, read(path, languageVersion))
    return sources.get(path)
  }
  return ({ file, source }) => {
    const path = fileNames.find((name) => name.endsWith(`/${file}`))!
    mutant = {
      path,
      source: ts.createSourceFile(path, source, {
        languageVersion: ts.ScriptTarget.ES2023,
        impliedNodeFormat: ts.ModuleKind.ESNext,
      }),
    }
    program = ts.createProgram(fileNames, options, host, program)
    return program.getSemanticDiagnostics(program.getSourceFile(path)).length === 0
  }
}

function throwDiagnostic({ messageText }: ts.Diagnostic): never {
  throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'))
}
