import { accessSync, constants, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';

/**
 * The Java virtual machine in the PATH, by HTCondor's attributes; nothing if there is none. Reads the file `release`
 * that every JDK and JRE since Java 7 has: starting one would take half a second of each worker's start.
 */
export function javaAd(env: NodeJS.ProcessEnv): AttrTexts {
  for (const place of (env['PATH'] ?? '').split(delimiter)) {
    const facts = place.startsWith('/') ? releaseOf(join(place, 'java')) : undefined;
    const version = facts?.get('JAVA_VERSION');
    if (version === undefined) continue;
    const [first = '', second = ''] = version.split(/[._]/);
    return {
      HasJava: 'true',
      JavaVersion: quoted(version),
      JavaVendor: quoted(facts?.get('IMPLEMENTOR') ?? 'unknown'),
      // Java 8 calls itself 1.8.
      JavaSpecificationVersion: quoted(first === '1' ? `1.${second}` : first),
    };
  }
  return {};
}

/** The lines `NAME="VALUE"` of its `release`; Java 8 may have its own JRE within a JDK. */
function releaseOf(program: string): ReadonlyMap<string, string> | undefined {
  try {
    accessSync(program, constants.X_OK);
    const home = dirname(dirname(realpathSync(program)));
    for (const file of [join(home, 'release'), join(home, '../release')]) {
      const text = textOf(file);
      if (text !== undefined)
        return new Map([...text.matchAll(/^(\w+)="?([^"\n]*)"?$/gm)].map(([, name = '', value = '']) => [name, value]));
    }
  } catch {
    // Not there.
  }
  return undefined;
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
