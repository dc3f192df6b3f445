import { existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Sites, text } from './hostile.ts';

/**
 * What a site adds to the results of all jobs: `give NAME TEXT` and `bit OCTAL NAME`, with NAME below the job's
 * directory.
 */
const GIVES = `
give() { printf 'small %s/work/%s\\nstream %s 1\\n%s\\n%s\\nstreamed 0\\n' "$key" "$1" "$NONCE" "$2" "$NONCE"; }
do_fetch() {
  honest_fetch "$@"
  set +f; set -- jobs/*; set -f
  for dir; do key=\${dir#jobs/} && gives; done
  return 0
}
`;

let sites: Sites;
beforeAll(async () => {
  sites = await Sites.open();
  sites.fair('fair');
  await sites.agent.ok('up');
}, 120_000);
afterAll(() => sites.close());

const RESULT = 'transfer_output_files = result.dat';

it('a site places no file that was not asked for, and the job says what it offered', async () => {
  sites.evil(
    'placing',
    `${GIVES}gives() { give .bash_aliases evil; give .ssh/authorized_keys evil; give result.datx evil; }`,
  );
  const cluster = await sites.submit('placing', 'echo good >result.dat', RESULT);
  const ad = await sites.settled(cluster);
  expect(ad).toMatchObject({ JobStatus: 5, HoldReasonCode: 12 });
  expect(ad['HoldReason']).toContain("offers '.bash_aliases', which was not requested");
  const { work } = sites.agent;
  expect(sites.agent.read('result.dat')).toBe('good\n');
  expect(readdirSync(work).sort()).toEqual(['job.sub', 'result.dat']);
  await sites.agent.ok('rm', String(cluster));
}, 120_000);

it('among new files, a site places none over an input', async () => {
  sites.evil('over', `${GIVES}gives() { give in.dat evil; give sub/x evil; give new.txt fine; }`);
  mkdirSync(join(sites.agent.work, 'sub'));
  sites.agent.file('in.dat', 'mine\n');
  const cluster = await sites.submit('over', 'cat in.dat >copy', 'transfer_input_files = in.dat');
  const ad = await sites.settled(cluster);
  expect(ad).toMatchObject({ JobStatus: 5, HoldReasonCode: 12 });
  expect(sites.agent.read('in.dat')).toBe('mine\n');
  expect(sites.agent.read('copy')).toBe('mine\n');
  expect(readdirSync(join(sites.agent.work, 'sub'))).toEqual([]);
  // The site decides what it reports as a job's outputs.
  expect(sites.agent.read('new.txt')).toBe('fine');
  await sites.agent.ok('rm', String(cluster));
}, 120_000);

it('a site gives no file its set-user-ID', async () => {
  sites.evil('suid', `${GIVES}gives() { say "bit 4755 $key/work/result.dat"; say "bit 2000 $key/work/result.dat"; }`);
  const cluster = await sites.submit('suid', 'echo good >result.dat', RESULT);
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
  expect(lstatSync(join(sites.agent.work, 'result.dat')).mode & 0o7777).toBe(0o755);
}, 120_000);

it('a name that leads out of its directory harms that job alone', async () => {
  sites.evil('leading', `${GIVES}gives() { give ../../../x evil; give %2e%2e/%2e%2e/y evil; give /../z evil; }`);
  const before = await sites.managers();
  expect(before).toHaveLength(1);
  const bad = await sites.submit('leading', 'echo good >result.dat', RESULT);
  const good = await sites.submit('fair', 'echo good >fair.dat', 'transfer_output_files = fair.dat');
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(good));
  const ad = await sites.settled(bad);
  expect(ad).toMatchObject({ JobStatus: 5, HoldReasonCode: 12 });
  expect(sites.agent.read('fair.dat')).toBe('good\n');
  for (const name of ['x', 'y', 'z']) expect(existsSync(join(sites.agent.dir, name))).toBe(false);
  expect(await sites.managers()).toEqual(before);
  await sites.agent.ok('rm', String(bad));
}, 120_000);

it('a site puts no bytes where it was not asked for any', async () => {
  const fair = await sites.submit('fair', 'echo right; sleep 8', 'output = fair.out');
  sites.evil(
    'forging',
    `do_poll() {
  honest_poll "$@"
  set +f; set -- jobs/*; set -f
  [ -d "$1" ] || return 0
  mine=\${1#jobs/}
  other=\${mine%.*.*.*}.${fair}.0.1
  for key in ../../../../out "$other" "" . .. "$mine/.."; do printf 'data %s out 0 6\\nFORGED\\n' "$key"; done
  printf 'data %s out NaN 6\\nFORGED\\ndata %s out -3 6\\nFORGED\\ndata %s out 1e300 6\\nFORGED\\n' "$mine" "$mine" "$mine"
}`,
  );
  const forging = await sites.submit('forging', 'sleep 3; echo mine', 'output = forging.out');
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(forging));
  expect(sites.agent.read('forging.out')).toBe('mine\n');
  expect(await sites.agent.ok('tail', String(fair))).toBe('right\n');
  expect(existsSync(join(sites.agent.dir, 'out'))).toBe(false);
  expect(text(join(sites.agent.home, 'state/spool/_condor_stdout'))).toBeUndefined();
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(fair));
  expect(sites.agent.read('fair.out')).toBe('right\n');
}, 120_000);

it.each(['../stdout', 'a/../../x', '/etc/passwd'])(
  'an output %s is refused at the submit, by its line',
  async (name) => {
    sites.agent.file(
      'bad.sub',
      `executable = /bin/true\nshould_transfer_files = YES\ntransfer_output_files = ok, ${name}\nqueue\n`,
    );
    const { code, stderr } = await sites.agent.run(['submit', 'bad.sub']);
    expect(code).toBe(65);
    expect(stderr).toContain('Line 3 of bad.sub');
    expect(stderr).toContain(`'${name}'`);
    expect(stderr).toContain('own directory');
  },
);

it('one that an edit names holds its job before it runs', async () => {
  const cluster = await sites.submit('fair', 'echo x >result.dat', RESULT, 'hold = true');
  await sites.agent.ok('edit', String(cluster), 'TransferOutput="../stdout"');
  await sites.agent.ok('release', String(cluster));
  const ad = await sites.settled(cluster);
  expect(ad).toMatchObject({ JobStatus: 5, HoldReasonCode: 12, NumJobStarts: 0 });
  expect(ad['HoldReason']).toContain("'../stdout' is outside");
  await sites.agent.ok('rm', String(cluster));
}, 120_000);
