import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { type FoundRuntime, type Runtime, runtimeAd, runtimeFor } from '../../src/pool/worker/container-runtimes.ts';
import { containerScript } from '../../src/pool/worker/container-script.ts';
import { findRuntimes } from '../../src/pool/worker/find-runtimes.ts';
import { endBriefRuns } from '../../src/pool/worker/run-briefly.ts';
import type { ContainerSpec } from '../../src/site/contract.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';

const APPTAINER: Runtime = {
  kind: 'apptainer',
  program: '/usr/bin/apptainer',
  version: '1.4.5',
  flags: ['--no-eval', '--no-privs'],
  fileFlags: ['--unsquash'],
};
const BOX: ContainerSpec = {
  image: { kind: 'there', path: '/images/x.sif' },
  docker: false,
  keepEntrypoint: false,
  alwaysPull: false,
  binds: [],
};

describe('a container runtime', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus runtimes '));
    mkdirSync(join(dir, 'bin'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  it.each([
    ['echo "FATAL:   no user namespaces" >&2; exit 255', 'apptainer: no user namespaces.'],
    ['exit 3', 'apptainer: a container ended with 3.'],
    ['exit 0', 'apptainer: files that a container writes are not visible here.'],
    [
      'echo "docker: no such flag." >&2; echo "See \'docker run --help\'." >&2; exit 125',
      'apptainer: docker: no such flag.',
    ],
  ])('does not count when it answers with %s', async (answer, why) => {
    const text = `#!/bin/sh\n[ "$1" != --version ] || { echo apptainer version 1.3; exit 0; }\n${answer}\n`;
    writeFileSync(join(dir, 'bin/apptainer'), text, { mode: 0o755 });
    expect(await findRuntimes({ dir, env: { PATH: join(dir, 'bin') }, owner: 'me' })).toEqual({
      runtimes: [],
      why: [why],
    });
    expect(readdirSync(dir).sort()).toEqual(['bin']);
  });

  it('that can use directories alone takes no other image', async () => {
    const text = `#!/bin/sh
case "$*" in
  --version) echo apptainer version 1.3 ;;
  *build*) echo 'FATAL:   no mksquashfs' >&2; exit 255 ;;
  *) while [ "$1" != --pwd ]; do shift; done; : >"$2/ok" ;;
esac
`;
    writeFileSync(join(dir, 'bin/apptainer'), text, { mode: 0o755 });
    const found: FoundRuntime = await findRuntimes({ dir, env: { PATH: `${join(dir, 'bin')}:/bin` }, owner: 'me' });
    const [apptainer] = found.runtimes;
    expect(apptainer).toMatchObject({ kind: 'apptainer', whyNoFiles: 'no mksquashfs' });
    const alone = { runtimes: apptainer ? [apptainer] : [], why: found.why };
    expect(runtimeAd(alone)).toEqual(expect.objectContaining({ HasContainer: 'true', HasSandboxImage: 'true' }));
    expect(runtimeAd(alone)).not.toHaveProperty('HasSIF');
    expect(runtimeAd(alone)).not.toHaveProperty('HasDockerURL');
    expect(runtimeAd(alone)['ContainerOfflineReason']).toContain('apptainer with image files: no mksquashfs.');
    expect(runtimeFor(BOX, alone, false)).toBeUndefined();
    expect(runtimeFor({ ...BOX, image: { kind: 'there', path: '/images/x' } }, alone, true)).toBe(apptainer);
  });

  it('that is being tested when the worker ends finishes its container, which would stay otherwise', async () => {
    const at = shellQuote(dir);
    const text = `#!/bin/sh
case "$*" in
  --version) echo podman version 4.3.1 ;;
  run*) echo "$*" >${at}/begun; until [ -e ${at}/go ]; do sleep 0.02; done; echo "$*" >${at}/ended ;;
esac
`;
    writeFileSync(join(dir, 'bin/podman'), text, { mode: 0o755 });
    const found = findRuntimes({ dir, env: { PATH: `${join(dir, 'bin')}:/bin` }, owner: 'me' });
    const line = (name: string) => {
      const words = existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : '';
      return words.endsWith('\n') ? words : undefined;
    };
    const begun = await until('the container', async () => line('begun'));
    expect(begun).toContain(`--label gryphus.dir=${dir}/probe-`);
    expect(begun).toContain('--label gryphus.owner=me ');
    endBriefRuns();
    writeFileSync(join(dir, 'go'), '');
    await until('its end', async () => line('ended'), 10_000);
    expect((await found).why).toContain('podman: files that a container writes are not visible here.');
  });

  it('refuses what it could only do wrong', () => {
    const script = (env: Readonly<Record<string, string>>, box: Partial<ContainerSpec> = {}, runtime = APPTAINER) =>
      containerScript(
        'a.1.0.1',
        {
          executable: { kind: 'there', path: '/bin/sh' },
          args: [],
          env,
          inputs: [],
          joinStderr: false,
          container: { ...BOX, ...box },
        },
        runtime,
        {
          dir,
          work: join(dir, 'work'),
          cwd: undefined,
          program: '/bin/sh',
          stdin: undefined,
          proxy: undefined,
          ads: false,
          image: '/images/x.sif',
          owner: '0@here',
          surroundings: {},
        },
      );
    expect(() => script({ 'a.b': 'x' })).toThrow("cannot pass a variable named 'a.b'");
    expect(() => script({}, { targetDir: '/a:b' })).toThrow("cannot mount the directory '/a:b'");
    const old = { ...APPTAINER, flags: [] };
    expect(() => script({ WHO: '$(id)' }, {}, old)).toThrow('would let a shell evaluate the variable WHO');
    expect(script({ WHO: '$(id)' }).go).toContain('--no-eval');
  });
});
