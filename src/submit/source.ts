import { parseArgsV1, parseArgsV2Quoted, isV2Quoted } from './argv.ts';
import type { WorldResult, SubmitWorld } from './world.ts';

/** A file or a command (ending in `|`) that supplies text. */
export interface DescriptionSource {
  readonly name: string;
  readonly command?: boolean;
  /** The file that stores a command's output; if it exists, it is read instead. */
  readonly into?: string | undefined;
}

interface Scope {
  readonly world: SubmitWorld;
  readonly cwd: string;
}

export function absolutePath(name: string, cwd: string): string {
  return name.startsWith('/') ? name : `${cwd === '/' ? '' : cwd}/${name}`;
}

function commandText(command: string, scope: Scope): WorldResult<{ readonly stdout: string; readonly status: number }> {
  const argv = isV2Quoted(command) ? parseArgsV2Quoted(command) : { ok: true as const, value: parseArgsV1(command) };
  if (!argv.ok) return { ok: false, reason: `Can't append args, ${argv.reason}` };
  const result = scope.world.run(argv.value, scope.cwd);
  return result.ok ? result : { ok: false, reason: `not a valid command: ${result.reason}` };
}

/** Reads a file or the output of a command, whose exit status only matters if the output is to be stored. */
export function sourceText(source: DescriptionSource, scope: Scope): WorldResult<string> {
  const { name, into } = source;
  const piped = name.includes('|');
  if (piped && !source.command && !name.endsWith('|')) {
    return { ok: false, reason: 'not a valid command, | must be at the end' };
  }
  const isCommand = source.command === true || piped;
  if (into !== undefined) {
    if (into === '') return { ok: false, reason: "destination for 'include into' expanded to ''" };
    if (into.endsWith('|')) return { ok: false, reason: "destination for 'include into' may not be a script" };
    const kept = scope.world.readText(absolutePath(into, scope.cwd));
    if (kept.ok) return kept;
  }
  if (!isCommand) {
    const text = scope.world.readText(absolutePath(name, scope.cwd));
    return text.ok ? text : { ok: false, reason: `can't open file ${name}: ${text.reason}` };
  }
  const said = commandText(piped ? name.replace(/[| ]+$/, '') : name, scope);
  if (!said.ok) return said;
  if (into === undefined) return { ok: true, value: said.value.stdout };
  if (said.value.status !== 0) return { ok: false, reason: `exited with error ${said.value.status}` };
  const saved = scope.world.writeText(absolutePath(into, scope.cwd), said.value.stdout);
  return saved.ok ? { ok: true, value: said.value.stdout } : { ok: false, reason: `can't open '${into}' for write` };
}
