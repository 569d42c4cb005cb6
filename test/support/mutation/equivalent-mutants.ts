import type { Change } from './mutants.ts'

/** Mutants that no test can kill, and why: the program does the same with them. */
export const EQUIVALENT_MUTANTS: readonly (Change & { readonly why: string })[] = []
