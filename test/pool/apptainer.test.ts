import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Contained, containerScript } from '../../src/pool/container-script.ts';
import { findRuntimes } from '../../src/pool/find-runtimes.ts';
import type { Runtime } from '../../src/pool/container-runtimes.ts';
import type { ContainerSpec } from '../../src/site/contract.ts';

/**
 * An apptainer that is none, since there is no package of it: it checks every word that it is given against what its manual has, and
 * runs the program where the sandbox is.
 */
const FAKE = String.raw`#!/bin/sh
[ "$1" != --version ] || { echo 'apptainer version 1.3.2'; exit 0; }
here=\${0%/*}
for word; do printf '%s\0' "$word"; done >>"$here/words"
fatal() { echo "FATAL:   $1" >&2; exit 255; }
[ "$1" = --quiet ] || fatal "not quiet"
action=$2
shift 2
case $action in
  pull)
    [ "$2" = docker://there:1 ] || fatal "While making image from oci registry: $2: connection refused"
    : >"$1"; exit 0 ;;
  exec | run) ;;
  *) fatal "unknown command \"$action\"" ;;
esac
from= to= pwd=
while :; do
  case $1 in
    --containall | --no-home) shift ;;
    --workdir) [ -d "$2" ] || fatal "no directory $2"; shift 2 ;;
    --pwd) pwd=$2; shift 2 ;;
    --bind) from=\${2%%:*} to=\${2#*:}; shift 2 ;;
    -*) fatal "unknown flag: $1" ;;
    *) break ;;
  esac
done
image=$1
shift
if [ "$action" = run ]; then set -- /bin/sh -c 'echo "by itself $*"' sh "$@"; fi
[ -d "$from" ] && [ "$pwd" = "$to" ] || fatal "no such mount"
if [ -e "$image$1" ]; then program=$image$1; shift; set -- "$program" "$@"; fi
command -v "$1" >/dev/null || fatal "stat $1: no such file or directory"
cd "$from" || exit
export FROM_IMAGE="$image"
eval "$(env | sed -n "s/^APPTAINERENV_\([A-Za-z_]*\)=.*/export \1=\"\$APPTAINERENV_\1\"/p")"
exec "$@"
`.replaceAll('\\${', '${');

describe('apptainer', () => {
  let dir: string;
  let runtime: Runtime;
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus apptainer '));
    mkdirSync(join(dir, 'bin'));
    writeFileSync(join(dir, 'bin/apptainer'), FAKE, { mode: 0o755 });
    const { runtimes, why } = await findRuntimes({ dir, env: { PATH: `${join(dir, 'bin')}:/usr/bin:/bin` } });
    const found = runtimes.find(({ kind }) => kind === 'apptainer');
    if (!found) throw new Error(why.join(' '));
    runtime = found;
  }, 120_000);
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  /** What starter.sh does with an attempt. */
  function run(spec: Partial<Contained>, box: Partial<ContainerSpec>, program = '/bin/sh', image?: string) {
    const attempt = join(dir, 'a.1.0.1');
    const work = join(attempt, 'work');
    rmSync(attempt, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    const container: ContainerSpec = {
      image: { kind: 'registry', name: 'docker://there:1' },
      docker: false,
      keepEntrypoint: false,
      alwaysPull: false,
      binds: [],
      ...box,
    };
    const { go } = containerScript(
      'a.1.0.1',
      {
        executable: { kind: 'there', path: program },
        args: [],
        env: {},
        stdin: undefined,
        inputs: [],
        joinStderr: false,
        ...spec,
        container,
      },
      runtime,
      {
        dir: attempt,
        work,
        cwd: undefined,
        program,
        stdin: undefined,
        proxy: undefined,
        ads: false,
        image,
        owner: '0@here',
        surroundings: { APPTAINER_CACHEDIR: '/cache' },
      },
    );
    writeFileSync(join(attempt, 'go'), go);
    const text = 'd=a.1.0.1; exec 2>"$d/said"; (. "$d/go"); s=$?; printf "%s %s" "$s" "$(cat "$d/said")"';
    const { stdout } = spawnSync('/bin/sh', ['-c', text], { cwd: dir, encoding: 'utf8' });
    const read = (name: string) => (existsSync(join(attempt, name)) ? readFileSync(join(attempt, name), 'utf8') : '');
    return {
      ended: stdout,
      out: read('stdout'),
      err: read('stderr'),
      started: existsSync(join(attempt, 'started')),
      work,
    };
  }

  it('runs programs of images, with their arguments and environment', () => {
    const env = { LINES: 'one\ntwo $(id)', PATH: '/bin:/usr/bin', QUOTES: `o'clock "x"` };
    const args = [
      '-c',
      'printf "%s|" "$@" "$LINES" "$QUOTES" "$GRYPHUS_KEY"; pwd >&2; exit 3',
      'sh',
      'a b',
      "'",
      'x\ny',
      '',
    ];
    const { ended, out, err, work } = run({ args, env }, {});
    expect(runtime).toMatchObject({ version: '1.3.2', program: join(dir, 'bin/apptainer') });
    expect(ended).toBe('3 ');
    expect(out).toBe(`a b|'|x\ny||${env.LINES}|${env.QUOTES}|a.1.0.1|`);
    expect(err).toBe(`${work}\n`);
    const words = readFileSync(join(dir, 'bin/words'), 'utf8');
    expect(words).not.toContain('two $(id)');
    expect(words).toContain('\0--containall\0--no-home\0');
  });

  it('says what it cannot start, and what it cannot fetch, and its signals are signals', () => {
    const missing = run({}, {}, '/not/there');
    expect(missing).toMatchObject({ started: false, ended: '216 FATAL:   stat /not/there: no such file or directory' });
    const image = { kind: 'registry', name: 'docker://gone:1' } as const;
    expect(run({}, { image })).toMatchObject({ started: false });
    expect(run({}, { image }).ended).toMatch(/^217 FATAL: .*docker:\/\/gone:1: connection refused$/);
    expect(run({}, { image: { kind: 'there', path: '/no.sif' } }, 'x', '/no.sif').ended).toBe(
      '217 There is no image /no.sif on the node.',
    );
    expect(run({ args: ['-c', 'kill -9 $$'] }, {}).ended).toMatch(/^137 .*Killed/);
    expect(run({ args: ['-c', 'exit 137'] }, {}).ended).toBe('137 ');
  });

  it('starts what the image starts by itself, out of files and directories', () => {
    const sif = join(dir, 'x.sif');
    writeFileSync(sif, '');
    expect(run({ args: ['a'] }, { image: { kind: 'there', path: sif } }, '', sif).out).toBe('by itself a\n');
    const script = ['-c', 'echo "$FROM_IMAGE"'];
    expect(run({ args: script }, { image: { kind: 'there', path: dir } }, '/bin/sh', dir).out).toBe(`${dir}\n`);
    const root = { targetDir: '/srv' };
    expect(run({ args: ['-c', 'echo "$_CONDOR_SCRATCH_DIR"'] }, root).out).toBe('/srv\n');
  });

  it.each([
    ['echo "FATAL: no user namespaces" >&2; exit 255', 'apptainer: FATAL: no user namespaces.'],
    ['exit 3', 'apptainer: a container ended with 3.'],
    ['exit 0', 'apptainer: what a container writes is not here.'],
  ])('does not count when it answers with %s', async (answer, why) => {
    const text = `#!/bin/sh\n[ "$1" != --version ] || { echo apptainer version 1.3; exit 0; }\n${answer}\n`;
    writeFileSync(join(dir, 'bin/apptainer'), text, { mode: 0o755 });
    expect(await findRuntimes({ dir, env: { PATH: join(dir, 'bin') } })).toEqual({ runtimes: [], why: [why] });
    expect(readdirSync(dir).sort()).toEqual(['bin']);
  });

  it('refuses what it could only do wrong', () => {
    expect(() => run({ env: { 'a.b': 'x' } }, {})).toThrow("cannot be given a variable of the name 'a.b'");
    expect(() => run({}, { targetDir: '/a:b' })).toThrow("cannot mount the directory '/a:b'");
  });
});
