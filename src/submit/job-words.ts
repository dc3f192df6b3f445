import type { TextSource } from '../job/values.ts';
import { readString } from '../job/values.ts';
import { parseArgsV1, parseArgsV2 } from './argv.ts';
import { parseEnvV1, parseEnvV2 } from './env.ts';
import { GryphusError } from '../errors.ts';

function wrong(attribute: string, reason: string): GryphusError {
  return new GryphusError('bad-input', `the job's ${attribute} cannot be read: ${reason}`, {
    suggestions: [`Correct it with gryphus edit, or submit again.`],
  });
}

/** A job's arguments, from `Arguments` (V2) or else `Args` (V1). Throws 'bad-input' if an edit made them unreadable. */
export function jobArguments(ad: TextSource): string[] {
  const v2 = readString(ad, 'Arguments');
  if (v2 === undefined) return parseArgsV1(readString(ad, 'Args') ?? '');
  const words = parseArgsV2(v2);
  if (!words.ok) throw wrong('Arguments', words.reason);
  return words.value;
}

/** The options of a Java job for the virtual machine, from `JavaVMArguments` (V2) or else `JavaVMArgs` (V1). */
export function javaOptions(ad: TextSource): string[] {
  const v2 = readString(ad, 'JavaVMArguments');
  if (v2 === undefined) return parseArgsV1(readString(ad, 'JavaVMArgs') ?? '');
  const words = parseArgsV2(v2);
  if (!words.ok) throw wrong('JavaVMArguments', words.reason);
  return words.value;
}

/**
 * A job's environment, from `Environment` (V2) or else `Env` (V1 with `EnvDelim`). Throws 'bad-input' like
 * `jobArguments`.
 */
export function jobEnvironment(ad: TextSource): Record<string, string> {
  const v2 = readString(ad, 'Environment');
  const v1 = v2 === undefined ? (readString(ad, 'Env') ?? '') : '';
  const delimiter = v2 === undefined ? readString(ad, 'EnvDelim')?.charAt(0) || ';' : '';
  // The jobs of a cluster, which come one after another, mostly share it.
  if (last?.v2 === v2 && last?.v1 === v1 && last.delimiter === delimiter) return { ...last.environment };
  const parsed = v2 === undefined ? parseEnvV1(v1, delimiter) : parseEnvV2(v2);
  if (!parsed.ok) throw wrong(v2 === undefined ? 'Env' : 'Environment', parsed.reason);
  const environment = Object.fromEntries([...parsed.value].map(([name, value]) => [name, value ?? '']));
  last = { v2, v1, delimiter, environment };
  return { ...environment };
}

let last:
  | {
      readonly v2: string | undefined;
      readonly v1: string;
      readonly delimiter: string;
      readonly environment: Readonly<Record<string, string>>;
    }
  | undefined;
