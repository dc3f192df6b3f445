import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BIN, type Ended, ended } from '../commands/cli.ts';
import { some } from '../slow.ts';
import { type CorpusCase, environmentOf, layOut, readCorpus } from './corpus.ts';
import { DIFFERENCES, UNRECORDED } from './differences.ts';

/** A slow run takes every case; otherwise a sample, and all with their own arguments. */
const all = readCorpus().filter(({ flags = [] }) => !flags.includes('random') && !flags.includes('time'));
const worded = all.filter(({ argv = [] }) => argv.length > 0);
const CASES = [...new Set([...worded, ...some(all, 60)])];

let home = '';
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gsub-'));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

let number = 0;
/** Runs the built command as condor_submit was run. */
async function submit(test: CorpusCase, words: readonly string[]): Promise<Ended & { readonly root: string }> {
  const root = join(home, `c${number++}`);
  mkdirSync(root);
  layOut(test, root);
  const child = spawn(process.execPath, [BIN, 'submit', ...words, '--home', home], {
    cwd: root,
    env: environmentOf(test),
  });
  child.stdin.end();
  return { ...(await ended(child)), root };
}

function adsIn(text: string): Record<string, string>[] {
  return text
    .split('\n\n')
    .filter((block) => block.trim() !== '')
    .map((block) => {
      const pairs = block
        .trim()
        .split('\n')
        .map((line) => line.split(/ = (.*)/s) as [string, string]);
      return Object.fromEntries(pairs.map(([name, value]) => [name, value]));
    });
}

/** Differences in attributes that do not depend on the machine. */
async function differences(test: CorpusCase): Promise<string[]> {
  const { argv = [], flags = [] } = test;
  const words = flags.includes('nojobsub')
    ? argv
    : flags.includes('subfirst')
      ? ['job.sub', ...argv]
      : [...argv, 'job.sub'];
  const ours = await submit(test, ['-dry-run:full', 'out.ads', ...words]);
  const said = ours.stderr.replaceAll(ours.root, '/jobs/dir');
  const refused = DIFFERENCES[test.name]?.error;
  if (refused) return ours.exit !== 0 && refused.test(said) ? [] : [`${test.name}: ${ours.exit} ${said}`];
  if ((ours.exit === 0) !== (test.exit === 0)) return [`${test.name}: exit ${ours.exit}: ${said}`];
  if (ours.exit !== 0) return [];
  const ads = adsIn(readFileSync(join(ours.root, 'out.ads'), 'utf8').replaceAll(ours.root, '/jobs/dir'));
  const jobs = test.jobs ?? test.ads.length;
  if (!ours.stdout.endsWith(`${jobs} job(s) dry-run to cluster 1.\n`)) return [`${test.name}: ${ours.stdout}`];
  if (ads.length !== test.ads.length) return [`${test.name}: ${ads.length} ads`];
  return test.ads.flatMap((theirs, i) => adDifferences(test, theirs, ads[i] ?? {}));
}

function adDifferences(test: CorpusCase, theirs: Record<string, string>, ours: Record<string, string>): string[] {
  const ignored = new Set([...UNRECORDED, ...(DIFFERENCES[test.name]?.ignore ?? [])]);
  return [...new Set([...Object.keys(theirs), ...Object.keys(ours)])]
    .filter((name) => !ignored.has(name) && theirs[name] !== ours[name])
    .filter((name) => !/htc\.example|htcuser|\/usr\/condor/.test(theirs[name] ?? ''))
    .map((name) => `${test.name}: ${name}: ${ours[name]} instead of ${theirs[name]}`);
}

describe.concurrent('the built command answers as condor_submit 25.14 did', () => {
  it.each(CASES.map((test) => [test.name, test] as const))('%s', async (_name, test) => {
    expect(await differences(test)).toEqual([]);
  });
});

const JOB = {
  name: '',
  exit: 0,
  ads: [],
  files: { 'job.sub': 'executable = job.sh\nqueue 2\n', 'job.sh': '#!/bin/sh\n' },
};
const BARE: CorpusCase = { ...JOB, files: { ...JOB.files, 'job.sub': 'executable = job.sh\narguments = $(x)\n' } };
const DOS: CorpusCase = { ...JOB, files: { ...JOB.files, 'job.sh': '#!/bin/sh\r\ntrue\r\n' } };
const ODD: CorpusCase = {
  ...JOB,
  files: { ...JOB.files, 'job.sub': 'executable = job.sh\noddity = 1\ntransfer_input_files = no\nqueue\n' },
};
const ADS = /^\d+ job\(s\) dry-run to cluster 1\.\n$/m;

describe.concurrent("condor_submit's options", () => {
  it.each<[words: string, test: CorpusCase, out: RegExp, error?: RegExp]>([
    ['-dry-run - -maxj -1 -sin -dis -fi job.sub', JOB, /^2 job/m],
    ['-dry-run - -batch-name b -batch-i 5.x job.sub', JOB, /^JobBatchId = "5\.x"\nJobBatchName = "b"$/m],
    ['-dry-run - -factory job.sub', JOB, /^2 job/],
    ['-dry-run - -allow-crlf-script job.sub', DOS, ADS, /CRLF/],
    ['-dry-run - -unused -disable job.sub', ODD, ADS],
    ['-dry-run - -u -unused -disable job.sub', ODD, ADS, /line 2: .*oddity/],
    ['-dry-run - -ap priority=9 -a arguments=8 job.sub', JOB, /^Args = "8"[^]*^JobPrio = 9$/m],
    ['-dry-run - job.sub -queue x in a b -maxjobs 3', BARE, /^Args = "a"[^]*^Args = "b"/m],
    ['-dry-run - -a executable=job.sh -q 2', JOB, /^2 job/m],
  ])('%s', async (message, test, out, error) => {
    const answer = await submit(test, message.split(/ +/));
    expect(answer).toMatchObject({ exit: 0, stdout: expect.stringMatching(out) });
    if (error) expect(answer.stderr).toMatch(error);
    else expect(answer.stderr).toBe('');
  });

  it.each<[words: string, test: CorpusCase, error: RegExp]>([
    ['-maxjobs 1 job.sub', JOB, /on Line 2 of job\.sub: Number of submitted jobs would exceed -maxjobs \(1\)/],
    ['-spool job.sub', JOB, /-spool: .*\n.*→/],
    ['-dry-run nodir/out.ads job.sub', JOB, /Cannot write "nodir\/out\.ads"/],
    ['-dry-run - job.sub', DOS, /CRLF/],
    ['-dry-run - job.sub', ODD, /on Line 3 of job\.sub/],
    ['-dry-run - job.sub other.sub', JOB, /'other\.sub' is one too many/],
  ])('%s is refused', async (message, test, error) => {
    const answer = await submit(test, message.split(' '));
    expect(answer.exit).not.toBe(0);
    expect(answer.stdout).toBe('');
    expect(answer.stderr).toMatch(error);
  });

  it('-dump writes the ads to a file', async () => {
    const { root, ...answer } = await submit(JOB, ['-dump', 'a b.ads', 'job.sub']);
    expect(answer).toEqual({ exit: 0, stderr: '', stdout: '2 job(s) dry-run to cluster 1.\n' });
    expect(adsIn(readFileSync(join(root, 'a b.ads'), 'utf8')).map((ad) => ad['ProcId'])).toEqual(['0', '1']);
  });
});
