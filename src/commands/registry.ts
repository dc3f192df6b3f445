import { Hold, Release, Rm } from './act.ts';
import { AlarmTest } from './alarm/test.ts';
import { Api } from './api.ts';
import { Backup } from './backup.ts';
import { ClassadEval } from './classad/eval.ts';
import { Completion } from './completion.ts';
import { CompatInstall } from './compat/install.ts';
import { CompatProfile } from './compat/profile.ts';
import { ConfigCommand } from './config.ts';
import { CredList } from './cred/list.ts';
import { CredMyproxy } from './cred/myproxy.ts';
import { CredProxy } from './cred/proxy.ts';
import { CredRenew } from './cred/renew.ts';
import { DagDraw } from './dag/draw.ts';
import { DagHalt, DagResume, DagRm } from './dag/steer.ts';
import { DagLint } from './dag/lint.ts';
import { DagStatusCommand } from './dag/status.ts';
import { DagSubmit } from './dag/submit.ts';
import { DagThrottle } from './dag/throttle.ts';
import { Doctor } from './doctor.ts';
import { Down } from './down.ts';
import { Edit } from './edit.ts';
import { FlockAdd } from './flock/add.ts';
import { FlockList } from './flock/list.ts';
import { FlockPause } from './flock/pause.ts';
import { FlockRm } from './flock/rm.ts';
import { FlockShow } from './flock/show.ts';
import { FlockTest } from './flock/test.ts';
import { GlideinList } from './glidein/list.ts';
import { GlideinStart } from './glidein/start.ts';
import { GlideinStop } from './glidein/stop.ts';
import { History } from './history.ts';
import { Log } from './log.ts';
import { MapCommand } from './map.ts';
import { Move } from './move.ts';
import { PoolIdle } from './pool/idle.ts';
import { PoolKeep, PoolOff, PoolOn } from './pool/off.ts';
import { Q } from './q.ts';
import { Recover } from './recover.ts';
import { Restore } from './restore.ts';
import { Retry } from './retry.ts';
import { Run } from './run.ts';
import { SiteAdd } from './site/add.ts';
import { SiteAudit } from './site/audit.ts';
import { SiteList } from './site/list.ts';
import { SiteLogin } from './site/login.ts';
import { SiteRm } from './site/rm.ts';
import { SiteShow } from './site/show.ts';
import { SiteTest } from './site/test.ts';
import { Status } from './status.ts';
import { Checkpoint, Continue, Suspend, Vacate } from './steer.ts';
import { Submit } from './submit.ts';
import { Ssh } from './ssh.ts';
import { Tail } from './tail.ts';
import { Top } from './top.ts';
import { Up } from './up.ts';
import { Wait } from './wait.ts';
import { Usage } from './usage.ts';
import { Reserve } from './reserve.ts';
import { Userprio } from './userprio.ts';
import { WebCommand } from './web.ts';
import { WhyCommand } from './why.ts';

export { GryphusHelp } from './help.ts';

/**
 * What oclif is given to choose from: it prepares each command, which takes longer than most commands do. Filled by main.
 */
export const CHOICE: Record<string, (typeof COMMANDS)[keyof typeof COMMANDS]> = {};

/** Every command by its words, joined by colons. No command's top-level imports include what only its work needs. */
export const COMMANDS = {
  submit: Submit,
  run: Run,
  q: Q,
  history: History,
  rm: Rm,
  hold: Hold,
  release: Release,
  retry: Retry,
  edit: Edit,
  move: Move,
  wait: Wait,
  tail: Tail,
  log: Log,
  why: WhyCommand,
  map: MapCommand,
  ssh: Ssh,
  top: Top,
  usage: Usage,
  userprio: Userprio,
  reserve: Reserve,
  web: WebCommand,
  vacate: Vacate,
  checkpoint: Checkpoint,
  suspend: Suspend,
  continue: Continue,
  'dag:submit': DagSubmit,
  'dag:status': DagStatusCommand,
  'dag:halt': DagHalt,
  'dag:resume': DagResume,
  'dag:throttle': DagThrottle,
  'dag:rm': DagRm,
  'dag:lint': DagLint,
  'dag:draw': DagDraw,
  'site:add': SiteAdd,
  'site:list': SiteList,
  'site:show': SiteShow,
  'site:test': SiteTest,
  'site:rm': SiteRm,
  'site:login': SiteLogin,
  'site:audit': SiteAudit,
  'glidein:start': GlideinStart,
  'glidein:list': GlideinList,
  'glidein:stop': GlideinStop,
  'flock:add': FlockAdd,
  'flock:list': FlockList,
  'flock:show': FlockShow,
  'flock:test': FlockTest,
  'flock:pause': FlockPause,
  'flock:rm': FlockRm,
  'pool:off': PoolOff,
  'pool:on': PoolOn,
  'pool:keep': PoolKeep,
  'pool:idle': PoolIdle,
  'cred:list': CredList,
  'cred:renew': CredRenew,
  'cred:proxy': CredProxy,
  'cred:myproxy': CredMyproxy,
  'alarm:test': AlarmTest,
  'compat:install': CompatInstall,
  'compat:profile': CompatProfile,
  config: ConfigCommand,
  up: Up,
  down: Down,
  status: Status,
  doctor: Doctor,
  backup: Backup,
  restore: Restore,
  recover: Recover,
  completion: Completion,
  api: Api,
  'classad:eval': ClassadEval,
} as const;
