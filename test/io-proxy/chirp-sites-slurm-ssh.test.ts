import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { htcondorPlace, needHtcondor } from '../../scripts/htcondor.mjs';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';

const CHIRP = join(htcondorPlace(), 'libexec/condor/condor_chirp');

/** Runs each line of its input as a command, and reports how it ended. */
const SCRIPT = `#!/bin/bash
chirp() { ${CHIRP} "$@"; }
while read -r line; do
  eval "$line" 2>&1
  echo "= $?"
done
`;

/** Sites, and the lines of a submit file that lead there. */
const PLACES = {
  'Slurm behind ssh': 'universe = grid\ngrid_resource = batch slurm cluster\n',
  'plain processes behind ssh': 'universe = grid\ngrid_resource = batch fork login\n',
  'the local universe': 'universe = local\n',
} as const;

describe.skipIf(!needHtcondor() || skipWithoutSlurm())('want_io_proxy at sites', { timeout: 240_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    agent = new TestAgent({ HOME: sshd.clientHome, SSH_AUTH_SOCK: undefined });
    agent.config('[glidein]\nnode = "own"\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    const more = '[limits]\npoll_min = "1s"\n';
    agent.site('login', { url: sshd.url, batch: 'fork', more });
    agent.site('cluster', {
      url: sshd.url,
      batch: 'slurm',
      prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`,
      more,
    });
    agent.file('chirps.sh', SCRIPT, 0o755);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
    await sshd?.stop();
  });

  it.each(Object.entries(PLACES))('answers HTCondor’s own client in %s', async (place, where) => {
    const name = place.replaceAll(' ', '-');
    const big = Buffer.alloc((3 << 20) + 7, `${place} `);
    writeFileSync(join(agent.work, `${name}.bin`), big);
    const steps: readonly (readonly [line: string, text: string | RegExp])[] = [
      [`echo one | chirp put - "${name} it's.txt"`, ''],
      [`echo two | chirp put -mode wa - "${name} it's.txt"; chirp fetch "${name} it's.txt" -`, 'one\ntwo\n'],
      // From a pipe it would send 8 KB at a time.
      [`chirp fetch ${name}.bin big; chirp put big ${name}.copy`, ''],
      [`chirp fetch nothing.there -`, /No such file/],
      ['chirp fetch ../../../../../../etc/passwd -', /Permission denied/],
      ['chirp set_job_attr Progress 42; chirp get_job_attr Progress', /^42$/],
      ['chirp set_job_attr Iwd \'"/"\'', /Permission denied/],
      ['chirp set_job_attr_delayed ChirpStep \'"last"\'; chirp get_job_attr_delayed ChirpStep', /^"last"$/],
      ['chirp ulog "half of it is done"', ''],
      ['stat -c %a "$_CONDOR_CHIRP_CONFIG"', '600\n'],
      ['cut -d" " -f3 "$_CONDOR_CHIRP_CONFIG" >cookie; cat /proc/*/cmdline 2>/dev/null | grep -c -a -f cookie', '0\n'],
    ];
    agent.file(`${name}.in`, `${steps.map(([line]) => line).join('\n')}\n`);
    const cluster = await agent.submit(
      `${where}executable = chirps.sh\ninput = ${name}.in\noutput = ${name}.out\nerror = ${name}.err\nlog = ${name}.log\n` +
        'transfer_output_files = ""\nwant_io_proxy = true\nqueue\n',
    );
    await agent.ok('wait', '--timeout', '120', String(cluster));
    const said = agent.read(`${name}.out`).split(/^= \d+\n/m);
    for (const [i, [line, text]] of steps.entries())
      if (typeof text === 'string') expect(said[i], line).toBe(text);
      else expect(said[i]?.trim(), line).toMatch(text);
    expect(readFileSync(join(agent.work, `${name}.copy`)).equals(big)).toBe(true);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ Progress: 42, ChirpStep: 'last', ExitCode: 0 });
    const log = () => parseUserLog(agent.read(`${name}.log`)).events;
    await until('its end in the log', () => log().some(({ type }) => type === 'terminated') || undefined);
    expect(log().filter(({ type }) => type === 'generic')).toMatchObject([{ text: 'half of it is done' }]);
  });

  it.runIf(SLOW).each(Object.entries(PLACES))(
    'appends each line once in %s, whoever is killed meanwhile',
    async (place, where) => {
      const ledger = `ledger of ${place}`;
      const log = `${place}.log`;
      agent.file(ledger, '');
      // Each line is a connection of its own, and is never sent again by the job itself.
      agent.file(
        'long.sh',
        `#!/bin/bash\nfor n in $(seq 1 80); do echo $n | ${CHIRP} put -mode wa - "$1" || exit 1; ${CHIRP} ulog "line $n"; done\n`,
        0o755,
      );
      const cluster = await agent.submit(
        `${where}executable = long.sh\narguments = "'${ledger}'"\nlog = ${log}\nerror = long.err\n` +
          'transfer_output_files = ""\nwant_io_proxy = true\nqueue\n',
      );
      const lines = () => agent.read(ledger).split('\n').length - 1;
      const beyond = (n: number) => until(`line ${n}`, () => lines() > n || undefined, 60_000);
      await beyond(2);
      for (let round = 0; round < 4; round++)
        for (const process of ['gridmanager/main.js', 'jobmanager.sh']) {
          killMatching(process, agent, sshd.home);
          await beyond(lines() + 1);
        }
      await agent.ok('wait', '--timeout', '200', String(cluster));
      expect(agent.read(ledger).trim().split('\n').map(Number)).toEqual(Array.from({ length: 80 }, (_, n) => n + 1));
      const told = () => parseUserLog(agent.read(log)).events.filter(({ type }) => type === 'generic').length;
      await until('the lines in the log', () => told() >= 80 || undefined);
      expect(told()).toBe(80);
      expect(existsSync(join(agent.work, '.chirp.config'))).toBe(false);
    },
  );
});
