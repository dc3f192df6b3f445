import { join } from 'node:path';
import { expect, it } from 'vitest';
import { shellWords } from '../../src/util/shell-quote.ts';
import { missingForNfs, withNfs } from '../sites/nfs-machines.ts';
import { SLOW } from '../slow.ts';

const CLI = join(import.meta.dirname, '../../dist/bin/gryphus.js');
const MISSING = SLOW ? missingForNfs() : '';
if (MISSING !== '') process.stderr.write(`A home on NFS is not tested: there is no ${MISSING}.\n`);

/** How long the server is away, seconds. */
const AWAY = 60;

/** `gryphus NAME WORDS`: on that machine, with a home and a submit directory on the server. */
const SCRIPT = `
machine front 1; machine other 2
mkdir /run/export/work; mkdir -m 700 /run/export/home
gryphus() { there=$1; shift; on $there env -C /run/nfs/work GRYPHUS_HOME=/run/nfs/home ${shellWords([process.execPath, CLI])} "$@"; }
soon() { for i in $(seq 1 900); do eval "$1" && return; sleep 0.2; done; echo "in vain: $1"; }
lines() { cat /run/export/work/ledger 2>/dev/null | grep -cx "$1"; }
daemons() { on $1 pgrep -f '[d]ist/|[r]edis-server'; }
cd /run/export/work
cat >job.sh <<'END'
#!/bin/sh
echo "$1 begins" >>ledger; sleep "$2"; echo "$1 ends" >>ledger; echo "on $(hostname)"
END
chmod 755 job.sh
job() { printf '%s\\n' "$2" 'executable = job.sh' "arguments = $1 $3" "output = $1.out" "log = $1.log" 'initialdir = /run/nfs/work' queue >$1.sub; }
job first 'should_transfer_files = NO' 0
job pool 'should_transfer_files = NO' 20
job site 'universe = grid
grid_resource = batch fork local' 20
sed -i 's:>>ledger:>>/run/nfs/work/ledger:g' job.sh
job waits 'hold = true' 0

gryphus front submit --wait first.sub >/dev/null 2>&1; cat first.out
for words in q up down; do echo "other, $words:"; gryphus other $words; done
gryphus front submit --terse pool.sub; gryphus front submit --terse site.sub
soon '[ "$(lines "pool begins")$(lines "site begins")" = 11 ]'
cut_off front; sleep ${AWAY}; join front
gryphus front wait --no-outcome --timeout 300 2 3 >/dev/null 2>&1; echo "after the server was away: $?"
end_server; sleep 5; serve
gryphus front submit --terse waits.sub
gryphus front down
gryphus other submit --terse waits.sub
# It sleeps for longer than the server keeps its locks.
sleeping=$(daemons other)
on other kill -STOP $sleeping; cut_off other
gryphus front submit --terse waits.sub
join other; on other kill -CONT $sleeping
soon '[ -z "$(daemons other)" ]'
echo "the other, awake:"; gryphus other q
echo "held: $(gryphus front q --json | grep -c ClusterId)"
gryphus front down
gryphus front history --json | grep -E '"(ClusterId|ExitCode|NumJobStarts)"'
echo "ledger:"; sort ledger; cat pool.out site.out
for log in first pool site; do echo "$log: $(grep -c ^005 $log.log)"; done
echo done
`;

it.skipIf(!SLOW || MISSING !== '')(
  'a home on NFS: is refused from a second machine, outlives a server that is away or restarted, and a machine that sleeps',
  async () => {
    const said = await withNfs(SCRIPT, 840_000);
    expect(said).not.toContain('in vain');
    const of = (from: string, to: string) => said.slice(said.indexOf(from), said.indexOf(to));
    expect(of('other, q:', 'other, up:')).toContain('is in use on host front.');
    expect(of('other, up:', 'other, down:')).toContain('is in use on host front.');
    expect(of('other, down:', '2.0 - 2.0')).toContain('is used on host front');
    expect(said).toContain('after the server was away: 0\n');
    // Submitted after the server's restart, on the other machine, and on this one while the other slept.
    for (const cluster of [4, 5, 6]) expect(said).toContain(`\n${cluster}.0 - ${cluster}.0\n`);
    expect(of('the other, awake:', 'held:')).toContain('is in use on host front.');
    expect(said).toContain('held: 3\n');
    const ran = (cluster: number) => `"ClusterId": ${cluster},\n  "ExitCode": 0,\n  "NumJobStarts": 1`;
    for (const cluster of [1, 2, 3]) expect(said).toContain(ran(cluster));
    expect(said).toContain(
      'ledger:\nfirst begins\nfirst ends\npool begins\npool ends\nsite begins\nsite ends\non front\non front\nfirst: 1\npool: 1\nsite: 1\ndone\n',
    );
  },
  900_000,
);
