import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { missingForSystemd, underSystemd } from '../sites/systemd-machine.ts';
import { SLOW } from '../slow.ts';

const ROOT = join(import.meta.dirname, '../..');
const MISSING = SLOW ? missingForSystemd() : '';
if (MISSING !== '') process.stderr.write(`Sessions under systemd are not tested: there is no ${MISSING}.\n`);

/** `as COMMANDS`: in a log-in of alice; `ours`: how many of her processes are Gryphus or its jobs. */
const SCRIPT = `
as() { su -l alice -c "PATH=${dirname(process.execPath)}:/usr/bin:/bin; gryphus() { node /opt/gryphus/dist/bin/gryphus.js \\"\\$@\\"; }; $1"; }
ours() { ps -u alice -o args --no-headers | grep -cE 'gryphus|redis|sleep 60[01]'; }
soon() { for i in $(seq 1 600); do eval "$1" && return; sleep 0.2; done; echo "in vain: $1"; }
clock() { cut -d. -f1 /proc/uptime; }
case $BOOT in
0)
  as 'mkdir -p ~/.config/systemd/user; gryphus up --systemd >~/.config/systemd/user/gryphus.service
    export XDG_RUNTIME_DIR=/run/user/1500; systemctl --user daemon-reload; systemctl --user enable --now gryphus'
  soon '[ "$(loginctl list-sessions --no-legend | grep -c alice)" = 0 ]'
  soon '[ "$(ours)" = 0 ]'
  echo "after the log-out: $(ours)"
  loginctl enable-linger alice
  soon '[ "$(ours)" -ge 3 ]'
  echo "lingering: $([ "$(ours)" -ge 3 ] && echo runs)"
  # From here on they belong to a session.
  as 'export XDG_RUNTIME_DIR=/run/user/1500; systemctl --user stop gryphus
    printf "executable = /bin/sleep\\narguments = 600\\nlog = pool.log\\nqueue\\n" >pool.sub
    printf "universe = grid\\ngrid_resource = batch fork local\\nexecutable = /bin/sleep\\narguments = 601\\nlog = site.log\\nqueue\\n" >site.sub
    gryphus submit pool.sub; gryphus submit site.sub'
  soon '[ "$(cat /home/alice/*.log | grep -c ^001)" = 2 ]'
  sleep 11
  echo "lingering, after the log-out: $(grep -lE '^(004|005|012)' /home/alice/*.log | wc -l) jobs ended"
  echo "reboot"
  systemctl reboot
  ;;
1)
  soon '[ "$(ours)" -ge 3 ]'
  echo "booted: $([ "$(ours)" -ge 3 ] && echo runs) without a log-in"
  soon '[ "$(grep -c ^001 /home/alice/pool.log)" = 2 ] || grep -q ^012 /home/alice/pool.log'
  soon 'grep -q ^012 /home/alice/site.log'
  grep -E -A1 '^(001|004|005|012)' /home/alice/pool.log /home/alice/site.log
  touch /off
  echo "off at $(clock)"
  systemctl poweroff
  ;;
esac
sleep 60
`;

it.skipIf(!SLOW || MISSING !== '')(
  'under systemd: a log-out with and without linger, and a reboot in the middle of two jobs',
  async () => {
    const said = await underSystemd(SCRIPT, { [ROOT]: '/opt/gryphus' }, 800_000);
    expect(said).not.toContain('in vain');
    expect(said).toContain('after the log-out: 0');
    expect(said).toContain('lingering: runs');
    expect(said).toContain('lingering, after the log-out: 0 jobs ended');
    expect(said).toContain('booted: runs without a log-in');
    // A worker that was told to end has vacated its job, which runs again; one that was killed with it leaves it to be held.
    expect(said).toMatch(/pool\.log:001 [^]*pool\.log:(?:004 [^]*pool\.log:001|012) /);
    expect(said).toMatch(/site\.log:012 [^]*(?:told to end|was rebooted)/);
    expect(said).not.toMatch(/\.log:005 /);
  },
  900_000,
);
