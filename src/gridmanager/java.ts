import { basename } from 'node:path';
import { transferList } from '../job/transfer-lists.ts';
import { UNIVERSE } from '../job/universe.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import { javaOptions, jobArguments } from '../submit/api.ts';

/** A job of the java universe: the program is the site's `java`, the class file and the jars are inputs. */
export function isJava(ad: TextSource): boolean {
  return readNumber(ad, 'JobUniverse') === UNIVERSE.java;
}

/**
 * What `java` is started with: the class is found in the job's directory, then in the jars. `sandbox`: whether the jars
 * were transferred there.
 */
export function javaArguments(ad: TextSource, sandbox: boolean): string[] {
  const jars = transferList(readString(ad, 'JarFiles') ?? '').map((jar) => (sandbox ? basename(jar) : jar));
  return [...javaOptions(ad), '-classpath', ['.', ...jars].join(':'), ...jobArguments(ad)];
}
