import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { missingForSystemd, underSystemd } from '../sites/systemd-machine.ts';
import { SLOW } from '../slow.ts';

const ROOT = join(import.meta.dirname, '../..');
const MISSING = SLOW ? missingForSystemd() : '';
if (MISSING !== '') process.stderr.write(`Sessions under systemd are not tested: there is no ${MISSING}.\n`);

/**
 * `as COMMANDS`: in a log-in of alice; `ours`: how many of her processes are Gryphus or its jobs; `until_ended COMMAND`: says how long these
 * take to end, also when this script is told to end as well.
 */
const TOOLS = `
as() { su -l alice -c "PATH=${dirname(process.execPath)}:/usr/bin:/bin; gryphus() { node /opt/gryphus/dist/bin/gryphus.js \\"\\$@\\"; }; $1"; }
ours() { ps -u alice -o args --no-headers | grep -cE 'gryphus|redis|sleep 60[01]'; }
soon() { for i in $(seq 1 1500); do eval "$1" && return; sleep 0.2; done; echo "in vain: $1"; }
clock() { cut -d' ' -f1 /proc/uptime; }
began() { grep -c ^001 /home/alice/$1.log; }
ended() { cat /home/alice/*.log | grep -cE '^(004|005|012)'; }
until_ended() { since=$(clock); trap '' TERM; "$@" & soon '[ "$(ours)" = 0 ] && sleep 0.3 && [ "$(ours)" = 0 ]'; echo "$*: all ended after $(clock | awk "{ print \\$1 - $since }") s"; }
unit() { as 'mkdir -p ~/.config/systemd/user; gryphus up --systemd >~/.config/systemd/user/gryphus.service
  export XDG_RUNTIME_DIR=/run/user/1500; systemctl --user daemon-reload; systemctl --user enable --now gryphus'; }
`;

const SCRIPT = `${TOOLS}
case $BOOT in
0)
  unit
  soon '[ "$(loginctl list-sessions --no-legend | grep -c alice)" = 0 ]'
  soon '[ "$(ours)" = 0 ]'
  echo "after the log-out: $(ours)"
  loginctl enable-linger alice
  soon '[ "$(ours)" -ge 3 ]'
  echo "lingering: $([ "$(ours)" -ge 3 ] && echo runs)"
  # From here on they belong to a session.
  as 'export XDG_RUNTIME_DIR=/run/user/1500; systemctl --user stop gryphus
    printf "executable = /bin/sleep\\nrequest_disk = 10M\\narguments = 600\\nlog = pool.log\\nqueue\\n" >pool.sub
    printf "universe = grid\\ngrid_resource = batch fork local\\nexecutable = /bin/sleep\\narguments = 601\\nlog = site.log\\nqueue\\n" >site.sub
    gryphus submit pool.sub; gryphus submit site.sub'
  soon '[ "$(cat /home/alice/*.log | grep -c ^001)" = 2 ]'
  sleep 11
  echo "lingering, after the log-out: $(grep -lE '^(004|005|012)' /home/alice/*.log | wc -l) jobs ended"
  until_ended systemctl reboot
  ;;
1)
  soon '[ "$(ours)" -ge 3 ]'
  echo "booted: $([ "$(ours)" -ge 3 ] && echo runs) without a log-in"
  soon '[ "$(grep -c ^001 /home/alice/pool.log)" = 2 ] || grep -q ^012 /home/alice/pool.log'
  soon 'grep -q ^012 /home/alice/site.log'
  grep -E -A1 '^(001|004|005|012)' /home/alice/pool.log /home/alice/site.log
  systemctl poweroff
  ;;
esac
sleep 60
`;

/** Jobs: one saves its process number when it is told to end, and notes what was saved; two wait. */
const JOBS = `
cd /home/alice
cat >save.sh <<'END'
#!/bin/sh
trap 'echo $$ >saved; exit 3' TERM
echo "$$ after $(cat saved)" >>/home/alice/saves
while :; do sleep 0.2; done
END
job() { printf '%s\\n' "log = $1.log" "$2" queue >$1.sub; }
job pool 'executable = /bin/sleep
request_disk = 10M
arguments = 600'
job site 'universe = grid
grid_resource = batch fork local
executable = /bin/sleep
arguments = 601'
job save 'executable = save.sh
request_disk = 10M
when_to_transfer_output = ON_EXIT_OR_EVICT
transfer_output_files = saved'
mkdir -p .config/gryphus; printf '[pool]\\ncpus = 2\\n' >.config/gryphus/config.toml
chmod 755 save.sh; chown -R alice: .
`;

const KILL_USER_PROCESSES = `${TOOLS}
case $BOOT in
0)
  mkdir -p /etc/systemd/logind.conf.d; printf '[Login]\\nKillUserProcesses=yes\\n' >/etc/systemd/logind.conf.d/kill.conf
  systemctl restart systemd-logind
  ${JOBS}
  as 'gryphus submit pool.sub; gryphus submit site.sub; while [ "$(cat *.log | grep -c ^001)" != 2 ]; do sleep 0.3; done'
  soon '[ "$(ours)" = 0 ]'
  echo "after the log-out: $(ours)"
  # Nothing of it was known at the log-out: the next start finds out.
  as 'gryphus up; while [ "$(grep -c ^001 pool.log)" != 2 ] || ! grep -q ^012 site.log; do sleep 0.3; done'
  soon '[ "$(ours)" = 0 ]'
  loginctl enable-linger alice
  as 'gryphus release 2; while [ "$(grep -c ^001 pool.log)" != 3 ] || [ "$(grep -c ^001 site.log)" != 2 ]; do sleep 0.3; done'
  soon '[ "$(ours)" = 0 ]'
  echo "lingering, after the log-out: $(ours)"
  unit
  as 'gryphus submit save.sub; while [ "$(grep -c ^012 site.log)" != 2 ]; do sleep 0.3; done; gryphus release 2'
  soon '[ "$(began pool)" = 4 ] && [ "$(began site)" = 3 ] && [ "$(began save)" = 1 ]'
  before=$(ended)
  sleep 11
  echo "the unit, after the log-out: $(($(ended) - before)) jobs ended"
  until_ended systemctl reboot
  ;;
*)
  soon '[ "$(began pool)" = $((4 + BOOT)) ] && [ "$(began save)" = $((1 + BOOT)) ]'
  [ $BOOT = 2 ] || { until_ended systemctl stop user@1500.service; systemctl reboot; sleep 60; }
  grep -E -A1 '^(001|004|005|012)' /home/alice/*.log
  echo "saves:"; cat /home/alice/saves
  systemctl poweroff
  ;;
esac
sleep 60
`;

/** Far less than systemd waits before it kills (90 s): this kernel is slow, and may share a busy machine. Seconds. */
const LIMIT = 45;

function endings(said: string): number[] {
  const found = [...said.matchAll(/all ended after (\S+) s/g)].map(([, seconds]) => Number(seconds));
  expect(found).not.toEqual([]);
  return found;
}

it.skipIf(!SLOW || MISSING !== '')(
  'under systemd: a log-out with and without linger, and a reboot in the middle of two jobs',
  async () => {
    const said = await underSystemd(SCRIPT, { [ROOT]: '/opt/gryphus' }, 1_500_000);
    expect(said).not.toContain('in vain');
    expect(said).toContain('after the log-out: 0');
    expect(said).toContain('lingering: runs');
    expect(said).toContain('lingering, after the log-out: 0 jobs ended');
    expect(said).toContain('booted: runs without a log-in');
    // A worker that was told to end has vacated its job, which runs again; one that was killed with it leaves it to be held.
    expect(said).toMatch(/pool\.log:001 [^]*pool\.log:(?:004 [^]*pool\.log:001|012) /);
    expect(said).toMatch(/site\.log:012 [^]*(?:told to end|was rebooted)/);
    expect(said).not.toMatch(/\.log:005 /);
    for (const seconds of endings(said)) expect(seconds).toBeLessThan(LIMIT);
  },
  1_600_000,
);

it.skipIf(!SLOW || MISSING !== '')(
  'under systemd that ends all processes of a log-out, by hand and by the unit, and at two ends of the unit',
  async () => {
    const said = await underSystemd(KILL_USER_PROCESSES, { [ROOT]: '/opt/gryphus' }, 1_500_000);
    expect(said).not.toContain('in vain');
    expect(said).toContain('\nafter the log-out: 0\n');
    expect(said).toContain('\nlingering, after the log-out: 0\n');
    expect(said).toContain('\nthe unit, after the log-out: 0 jobs ended\n');
    const events = (job: string) =>
      [...said.matchAll(new RegExp(`/${job}\\.log:(\\d+)`, 'g'))].map(([, event]) => event);
    // Two log-outs by hand, and two ends of the unit after a third.
    expect(events('pool')).toEqual(['001', ...Array.from({ length: 5 }, () => ['004', '001']).flat()]);
    expect(events('save')).toEqual(['001', '004', '001', '004', '001']);
    expect(events('site')).toEqual(['001', '012', '001', '012', '001', '012']);
    expect(said.match(/all processes there were told to end/g)).toHaveLength(2);
    expect(said).toContain('the machine was rebooted while it ran');
    // Each goes on with what the one before has saved.
    expect(said).toMatch(/saves:\n(\d+) after \n(\d+) after \1\n\d+ after \2\n/);
    for (const seconds of endings(said)) expect(seconds).toBeLessThan(LIMIT);
  },
  1_600_000,
);
