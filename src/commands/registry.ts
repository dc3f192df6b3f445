import type { Config } from '@oclif/core';
import type { GryphusCommand } from './command.ts';

export type CommandClass = typeof GryphusCommand & (new (argv: string[], config: Config) => GryphusCommand);

/** What oclif's help describes. Filled by main, because it takes all classes. */
export const CHOICE: Record<string, CommandClass> = {};

/** Every command by its words, joined by colons; its code is loaded when it is called. */
export const COMMANDS = {
  submit: async () => (await import('./submit.ts')).Submit,
  run: async () => (await import('./run.ts')).Run,
  q: async () => (await import('./q.ts')).Q,
  history: async () => (await import('./history.ts')).History,
  rm: async () => (await import('./act.ts')).Rm,
  hold: async () => (await import('./act.ts')).Hold,
  release: async () => (await import('./act.ts')).Release,
  retry: async () => (await import('./retry.ts')).Retry,
  edit: async () => (await import('./edit.ts')).Edit,
  move: async () => (await import('./move.ts')).Move,
  wait: async () => (await import('./wait.ts')).Wait,
  tail: async () => (await import('./tail.ts')).Tail,
  log: async () => (await import('./log.ts')).Log,
  why: async () => (await import('./why.ts')).WhyCommand,
  map: async () => (await import('./map.ts')).MapCommand,
  ssh: async () => (await import('./ssh.ts')).Ssh,
  top: async () => (await import('./top.ts')).Top,
  usage: async () => (await import('./usage.ts')).Usage,
  userprio: async () => (await import('./userprio.ts')).Userprio,
  reserve: async () => (await import('./reserve.ts')).Reserve,
  web: async () => (await import('./web.ts')).WebCommand,
  vacate: async () => (await import('./steer.ts')).Vacate,
  checkpoint: async () => (await import('./steer.ts')).Checkpoint,
  suspend: async () => (await import('./steer.ts')).Suspend,
  continue: async () => (await import('./steer.ts')).Continue,
  'dag:submit': async () => (await import('./dag/submit.ts')).DagSubmit,
  'dag:status': async () => (await import('./dag/status.ts')).DagStatusCommand,
  'dag:halt': async () => (await import('./dag/steer.ts')).DagHalt,
  'dag:resume': async () => (await import('./dag/steer.ts')).DagResume,
  'dag:throttle': async () => (await import('./dag/throttle.ts')).DagThrottle,
  'dag:rm': async () => (await import('./dag/steer.ts')).DagRm,
  'dag:lint': async () => (await import('./dag/lint.ts')).DagLint,
  'dag:draw': async () => (await import('./dag/draw.ts')).DagDraw,
  'site:add': async () => (await import('./site/add.ts')).SiteAdd,
  'site:list': async () => (await import('./site/list.ts')).SiteList,
  'site:show': async () => (await import('./site/show.ts')).SiteShow,
  'site:test': async () => (await import('./site/test.ts')).SiteTest,
  'site:rm': async () => (await import('./site/rm.ts')).SiteRm,
  'site:login': async () => (await import('./site/login.ts')).SiteLogin,
  'site:audit': async () => (await import('./site/audit.ts')).SiteAudit,
  'glidein:start': async () => (await import('./glidein/start.ts')).GlideinStart,
  'glidein:list': async () => (await import('./glidein/list.ts')).GlideinList,
  'glidein:stop': async () => (await import('./glidein/stop.ts')).GlideinStop,
  'flock:add': async () => (await import('./flock/add.ts')).FlockAdd,
  'flock:list': async () => (await import('./flock/list.ts')).FlockList,
  'flock:show': async () => (await import('./flock/show.ts')).FlockShow,
  'flock:test': async () => (await import('./flock/test.ts')).FlockTest,
  'flock:pause': async () => (await import('./flock/pause.ts')).FlockPause,
  'flock:rm': async () => (await import('./flock/rm.ts')).FlockRm,
  'pool:off': async () => (await import('./pool/off.ts')).PoolOff,
  'pool:on': async () => (await import('./pool/off.ts')).PoolOn,
  'pool:keep': async () => (await import('./pool/off.ts')).PoolKeep,
  'pool:idle': async () => (await import('./pool/idle.ts')).PoolIdle,
  'cred:list': async () => (await import('./cred/list.ts')).CredList,
  'cred:renew': async () => (await import('./cred/renew.ts')).CredRenew,
  'cred:proxy': async () => (await import('./cred/proxy.ts')).CredProxy,
  'cred:myproxy': async () => (await import('./cred/myproxy.ts')).CredMyproxy,
  'alarm:test': async () => (await import('./alarm/test.ts')).AlarmTest,
  'compat:install': async () => (await import('./compat/install.ts')).CompatInstall,
  'compat:profile': async () => (await import('./compat/profile.ts')).CompatProfile,
  config: async () => (await import('./config.ts')).ConfigCommand,
  up: async () => (await import('./up.ts')).Up,
  down: async () => (await import('./down.ts')).Down,
  status: async () => (await import('./status.ts')).Status,
  doctor: async () => (await import('./doctor.ts')).Doctor,
  backup: async () => (await import('./backup.ts')).Backup,
  restore: async () => (await import('./restore.ts')).Restore,
  recover: async () => (await import('./recover.ts')).Recover,
  completion: async () => (await import('./completion.ts')).Completion,
  api: async () => (await import('./api.ts')).Api,
  'classad:eval': async () => (await import('./classad/eval.ts')).ClassadEval,
} as const satisfies Record<string, () => Promise<CommandClass>>; // biome-ignore format: a table

export type CommandId = keyof typeof COMMANDS;
export type Commands = { readonly [Id in CommandId]: Awaited<ReturnType<(typeof COMMANDS)[Id]>> };

/** The classes of all commands: for help, completion and the documentation. */
export async function allCommands(): Promise<Commands> {
  const all = await Promise.all(Object.entries(COMMANDS).map(async ([id, load]) => [id, await load()] as const));
  return Object.fromEntries(all) as Commands;
}
