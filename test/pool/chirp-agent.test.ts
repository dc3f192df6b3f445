import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { htcondorPlace, needHtcondor } from '../../scripts/htcondor.mjs';
import { parseUserLog } from '../../src/user-log/text.ts';
import { until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';
import { quickPool } from './quick-pool.ts';

const CHIRP = join(htcondorPlace(), 'libexec/condor/condor_chirp');

/** Runs each line of its input as a command, and reports how it ended. */
const SCRIPT = `#!/bin/bash
chirp() { ${CHIRP} "$@"; }
while read -r line; do
  eval "$line" 2>&1
  echo "= $?"
done
`;

describe.skipIf(!needHtcondor())('want_io_proxy in the pool', () => {
  const agent = quickPool('#!/bin/sh\n');

  /** The output and the status of each line, which a job runs. */
  async function job(name: string, lines: readonly string[], more = 'want_io_proxy = true\n') {
    agent.file('chirps.sh', SCRIPT, 0o755);
    agent.file(`${name}.in`, `${lines.join('\n')}\n`);
    const cluster = await agent.submit(
      `executable = chirps.sh\ninput = ${name}.in\noutput = ${name}.out\nerror = ${name}.err\nlog = ${name}.log\n` +
        `should_transfer_files = YES\n${more}queue\n`,
    );
    await agent.ok('wait', '--timeout', '60', String(cluster));
    const said = agent.read(`${name}.out`).split(/^= (\d+)\n/m);
    return { cluster, said: lines.map((_, i) => [said[2 * i] ?? '', Number(said[2 * i + 1])] as const) };
  }

  it('reads and writes the files of the submit directory with HTCondor’s own client', async () => {
    const big = Buffer.alloc(5 << 20, 'gryphus ');
    agent.file('given.txt', 'one\ntwo\n');
    writeFileSync(join(agent.work, 'big.bin'), big);
    mkdirSync(join(agent.work, 'tree/deep'), { recursive: true });
    agent.file('tree/deep/file', '');
    const steps: readonly (readonly [line: string, text: string | RegExp, status: number])[] = [
      ['chirp fetch given.txt here && cat here', 'one\ntwo\n', 0],
      ['chirp fetch big.bin big; cat big | wc -c', `${big.length}\n`, 0],
      ['chirp put big "big copy.bin"', '', 0],
      ['echo three | chirp put -mode wa - given.txt', '', 0],
      ['chirp put -perm 640 here tree/../made.txt', '', 0],
      // Its status is the number of bytes.
      ['chirp read -offset 4 given.txt 3', 'two\n', 3],
      ['chirp read -offset 0 -stride 1 2 given.txt 4', 'oeto\n', 4],
      ['echo XY >two; chirp write -offset 1 made.txt two 2', '', 2],
      ['chirp stat made.txt', /size:? *8\b/i, 0],
      ['chirp getdir . | grep -x -e made.txt -e given.txt', 'given.txt\nmade.txt\n', 0],
      ['chirp getdir -l . | grep -c ^made.txt', '1\n', 0],
      ['chirp access made.txt rw', '', 0],
      ['chirp chmod made.txt 600', '', 0],
      ['chirp truncate made.txt 5', '', 0],
      ['chirp utime made.txt 1000 2000', '', 0],
      ['chirp link made.txt made.link', '', 0],
      ['chirp link -s made.txt made.sym', '', 0],
      ['chirp readlink made.sym 100', 'made.txt\n', 8],
      ['chirp lstat made.sym >/dev/null', '', 0],
      ['chirp statfs . >/dev/null', '', 0],
      ['chirp whoami', 'CONDOR\n', 6],
      ['chirp remove big.bin', '', 0],
      ['chirp fetch nothing here', /No such file/, 1],
      ['chirp rmdir tree', /not empty/i, 255],
      ['chirp rmdir -r tree', '', 0],
      ['chirp fetch made.txt - | od -An -c', '   o   X   Y  \\n   t\n', 0],
      ['stat -c %a .chirp.config', '600\n', 0],
      ['[ "$_CONDOR_CHIRP_CONFIG" = "$PWD/.chirp.config" ]', '', 0],
      ['cut -d" " -f3 .chirp.config >cookie; cat /proc/*/cmdline 2>/dev/null | grep -c -a -f cookie', '0\n', 1],
      [
        'exec 5<>/dev/tcp/127.0.0.1/$(cut -d" " -f2 .chirp.config); echo cookie 0 >&5; head -1 <&5; exec 5>&-',
        '-1\n',
        0,
      ],
    ];
    const { said } = await job(
      'files',
      steps.map(([line]) => line),
    );
    for (const [i, [line, text, status]] of steps.entries()) {
      if (typeof text === 'string') expect(said[i], line).toEqual([text, status]);
      else expect(said[i]?.[0], line).toMatch(text);
      expect(said[i]?.[1], line).toBe(status);
    }
    expect(readFileSync(join(agent.work, 'big copy.bin')).equals(big)).toBe(true);
    expect(agent.read('given.txt')).toBe('one\ntwo\nthree\n');
    expect(existsSync(join(agent.work, '.chirp.config'))).toBe(false);
  }, 120_000);

  it('reads and sets attributes of the job, and writes into its log', async () => {
    const denied = expect.stringContaining('Permission denied') as string;
    const steps: readonly (readonly [line: string, text: string])[] = [
      ['chirp get_job_attr Out', '"attributes.out"'],
      ['chirp set_job_attr Progress 42; chirp get_job_attr Progress', '42'],
      ['chirp get_job_attr NotThere', 'UNDEFINED'],
      ['chirp set_job_attr Owner \'"root"\'', denied],
      ['chirp set_job_attr Iwd \'"/"\'', denied],
      ['chirp set_job_attr TransferOutputRemaps \'"a=/b"\'', denied],
      ['chirp set_job_attr OutputDirectory \'"/"\'', denied],
      ['chirp set_job_attr GryphusSite \'"x"\'', denied],
      ['chirp set_job_attr Broken "1 +"', expect.stringContaining('Invalid argument') as string],
      ['chirp set_job_attr_delayed ChirpStep \'"last"\'; chirp get_job_attr_delayed ChirpStep', '"last"'],
      ['chirp get_job_attr_delayed ClusterId', expect.stringMatching(/^\d+$/) as string],
      ['chirp set_job_attr_delayed Other 7', ''],
      ['chirp ulog "half of it is done"', ''],
    ];
    const { said, cluster } = await job(
      'attributes',
      steps.map(([line]) => line),
    );
    for (const [i, [line, text]] of steps.entries()) expect(said[i]?.[0].trim(), line).toEqual(text);
    // condor_starter answers 1 to a delayed attribute whose name does not begin with Chirp.
    expect(said[11]?.[1]).toBe(1);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ Progress: 42, ChirpStep: 'last' });
    expect(ad).not.toHaveProperty('Other');
    const log = () => parseUserLog(agent.read('attributes.log')).events;
    await until('its end in the log', () => log().some(({ type }) => type === 'terminated') || undefined);
    expect(log().filter(({ type }) => type === 'generic')).toMatchObject([{ text: 'half of it is done' }]);
  }, 120_000);

  it('reaches nothing above the submit directory, no keys, and nothing without want_io_proxy', async () => {
    agent.file('key.pem', '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n');
    mkdirSync(join(agent.work, '.ssh'), { recursive: true });
    agent.file('.ssh/config', 'secret');
    symlinkSync('/etc', join(agent.work, 'etc'));
    symlinkSync('/etc/passwd', join(agent.work, 'passwd'));
    symlinkSync('key.pem', join(agent.work, 'alias'));
    const lines = [
      'chirp fetch /etc/passwd -',
      'chirp fetch ../../../../../../etc/passwd -',
      'chirp fetch etc/passwd -',
      'chirp fetch passwd -',
      'chirp fetch key.pem -',
      'chirp fetch alias -',
      'chirp fetch .ssh/config -',
      'chirp read key.pem 10',
      'echo x | chirp put - .ssh/authorized_keys',
      'echo x | chirp put - etc/x-from-a-job',
      'chirp link -s ../up here',
      'chirp link -s /etc/passwd here',
      'chirp getdir ..',
    ];
    const { said } = await job('closed', lines);
    for (const [i, line] of lines.entries()) expect(said[i]?.[0], line).toMatch(/Permission denied/);
    for (const [i, line] of lines.entries()) expect(said[i]?.[1], line).not.toBe(0);
    const without = await job('without', ['ls -a; chirp get_job_attr Out'], '');
    expect(without.said[0]?.[0]).toContain('cannot chirp_connect');
    expect(without.said[0]?.[0]).not.toMatch(/^\.chirp\.config$/m);
  }, 120_000);

  it.runIf(SLOW)(
    'goes on when the worker, the central manager and the GridManager are killed under it',
    async () => {
      const ledger = join(agent.work, 'ledger');
      agent.file('ledger', '');
      agent.file(
        'long.sh',
        `#!/bin/bash\nfor n in $(seq 1 60); do until echo $n | ${CHIRP} put -mode wa - ledger; do sleep 0.1; done; sleep 0.05; done\n`,
        0o755,
      );
      const cluster = await agent.submit(
        'executable = long.sh\nwant_io_proxy = true\nshould_transfer_files = YES\nerror = long.err\nqueue\n',
      );
      const lines = () => readFileSync(ledger, 'utf8').split('\n').length - 1;
      const beyond = (n: number) => until(`line ${n}`, () => lines() > n || undefined);
      await beyond(5);
      for (const process of ['worker.mjs', 'central-manager-main.js', 'gridmanager/main.js']) {
        killMatching(process, agent);
        await beyond(lines() + 5);
      }
      await agent.ok('wait', '--timeout', '60', String(cluster));
      const got = readFileSync(ledger, 'utf8').trim().split('\n').map(Number);
      expect(got).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
      const [ad] = await agent.ads(cluster);
      expect(ad).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
    },
    120_000,
  );
});
