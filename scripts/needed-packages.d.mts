export interface DebianPackage {
  readonly name: string;
  readonly tests: readonly string[];
  readonly uses?: readonly string[];
}
export function chosenTests(root: string, words: readonly string[]): string[];
export function withImports(root: string, files: readonly string[]): string[];
export function isNeeded(one: DebianPackage, files: readonly string[]): boolean;
export function anyMatches(globs: readonly string[], files: readonly string[]): boolean;
