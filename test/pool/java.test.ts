import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { javaAd } from '../../src/pool/host/java.ts';

const dir = mkdtempSync('/tmp/gry-java-');
afterAll(() => rmSync(dir, { recursive: true }));

/** A PATH with a link to the `java` of a JDK that has this `release`. */
function withRelease(name: string, release: string, below = ''): NodeJS.ProcessEnv {
  const home = join(dir, name, below);
  const bin = join(dir, `${name}.bin`);
  for (const place of [join(home, 'bin'), bin]) mkdirSync(place, { recursive: true });
  writeFileSync(join(home, 'bin/java'), '');
  chmodSync(join(home, 'bin/java'), 0o755);
  writeFileSync(join(dir, name, 'release'), release);
  symlinkSync(join(home, 'bin/java'), join(bin, 'java'));
  return { PATH: `nowhere:/nowhere:${bin}` };
}

describe('the Java of a machine', () => {
  it('is described by the attributes of HTCondor', () => {
    expect(javaAd(withRelease('new', 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nMODULES="a b"\n'))).toEqual({
      HasJava: 'true',
      JavaVersion: '"17.0.15"',
      JavaVendor: '"Debian"',
      JavaSpecificationVersion: '"17"',
    });
    expect(javaAd(withRelease('old', 'JAVA_VERSION="1.8.0_292"\n', 'jre'))).toEqual({
      HasJava: 'true',
      JavaVersion: '"1.8.0_292"',
      JavaVendor: '"unknown"',
      JavaSpecificationVersion: '"1.8"',
    });
  });

  it('is not advertised if there is none, or nothing says what it is', () => {
    expect(javaAd({ PATH: `/nowhere:${dir}` })).toEqual({});
    expect(javaAd(withRelease('mute', 'SOURCE="x"\n'))).toEqual({});
    expect(javaAd({})).toEqual({});
  });
});
