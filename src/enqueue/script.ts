import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { type BatchScript, describeScript, type Destination, isScript, readScript } from '../batch-script/api.ts';
import type { Paths } from '../config/paths.ts';
import { POOL_SITE, sharesHome } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { parseDependency, printDependency, type Target } from '../job/dependency.ts';
import type { Queue } from '../queue/api.ts';
import type { SiteChooser } from './site-choice.ts';
import type { SubmitRequest, Warning } from './types.ts';
import { ownUser } from '../util/own-user.ts';
import { makeDirs, writeWhole } from '../util/private-file.ts';

export interface ScriptScope {
  readonly paths: Paths;
  readonly chooser: SiteChooser;
  readonly owner: string;
  /** Absent for a dry run, which writes nothing. */
  readonly queue?: Queue;
}

export function isScriptRequest({ text, script }: SubmitRequest): boolean {
  return script !== undefined || isScript(text);
}

/** What a batch script means as a submit description. The agent keeps a copy of the script, as batch systems do. */
export async function fromScript(
  request: SubmitRequest,
  scope: ScriptScope,
): Promise<{ readonly description: SubmitRequest; readonly warnings: readonly Warning[] }> {
  const { script: wanted = {}, file, text } = request;
  const shown = file === undefined || file === '-' ? '<stdin>' : file;
  // A submit description cannot hold a line end.
  const own = (file === undefined || file === '-' ? (wanted.name ?? 'STDIN') : basename(file)).replaceAll(
    /[\n\r]/g,
    '_',
  );
  const script = readScript(text, { file: shown, system: wanted.system, words: wanted.options ?? [] });
  if (script.interpreter === undefined && (script.system === undefined || script.system === 'slurm')) {
    throw new GryphusError(
      'bad-input',
      `${shown} does not begin with #! and the path of an interpreter, so it cannot be run.`,
      {
        suggestions: ['Write #!/bin/sh as its first line.'],
      },
    );
  }
  const to = destinationOf(script, wanted.site, scope.chooser);
  await nameTargets(script, scope);
  const whole = script.interpreter === undefined ? `#!${shellOf(script, to)}\n${text}` : text;
  const executable = scope.queue === undefined ? dryExecutable(request) : keep(scope.paths, whole, own);
  const { username, homedir, uid } = ownUser();
  const translation = describeScript(script, {
    executable,
    fileName: own,
    args: wanted.args ?? [],
    input: wanted.input ?? [],
    to,
    by: {
      cwd: request.cwd ?? process.cwd(),
      home: process.env['HOME'] ?? homedir,
      user: username,
      uid,
      host: hostname(),
      path: process.env['PATH'] ?? '',
      shell: process.env['SHELL'] ?? '/bin/sh',
    },
  });
  if (scope.queue !== undefined) await pruneScripts(scope.paths, scope.queue);
  const { script: _, ...rest } = request;
  return {
    description: {
      ...rest,
      text: translation.text,
      attributes: { ...rest.attributes, ...translation.attributes },
      warnUnused: false,
    },
    warnings: translation.warnings,
  };
}

/** What runs a script that names nothing itself. PBS has the user's own shell run it. */
function shellOf({ system, wishes }: BatchScript, { shared }: Destination): string {
  return wishes.shell?.path ?? (system === 'pbs' && shared ? ownUser().shell : undefined) ?? '/bin/sh';
}

/** The site that the submit names, else the script's, else one with the queue's name, else the configuration's. */
function destinationOf({ wishes }: BatchScript, named: string | undefined, chooser: SiteChooser): Destination {
  const wanted = named ?? wishes.site;
  if (wanted !== undefined) return destination(chooser, wanted);
  if (wishes.queue !== undefined && chooser.has(wishes.queue)) {
    const site = destination(chooser, wishes.queue);
    // It is the site's name, and not that of a queue there.
    delete wishes.queue;
    return site;
  }
  return destination(chooser, chooser.defaultSite);
}

function destination(chooser: SiteChooser, name: string): Destination {
  const site = chooser.site(name);
  if (site.name === POOL_SITE.name) return { kind: 'pool', name: site.name, batch: 'pool', shared: true };
  if (site.target.kind === 'gram') {
    throw new GryphusError('bad-input', `Site ${name} is a GRAM service, which runs no batch scripts.`, {
      suggestions: ['Name the script as the executable of a submit file.'],
    });
  }
  return { kind: 'site', name: site.name, batch: site.batch, shared: sharesHome(site) };
}

/** Dependencies may name jobs by their names (Grid Engine, LSF). */
async function nameTargets({ wishes, system }: BatchScript, { queue, owner }: ScriptScope): Promise<void> {
  if (wishes.dependency === undefined) return;
  const dependency = parseDependency(wishes.dependency);
  const names = dependency.terms.flatMap((term) =>
    'targets' in term ? term.targets.flatMap(({ name }) => name ?? []) : [],
  );
  if (names.length === 0 || queue === undefined) return;
  const clusters = (await queue.clusters()).filter((one) => one.owner === owner);
  const named = (name: string): Target[] => {
    const pattern = new RegExp(`^${name.replaceAll(/[.+?^$(){}|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`);
    const found = clusters.filter(({ batchName }) => pattern.test(batchName)).map(({ cluster }) => ({ cluster }));
    if (found.length > 0 || system === 'sge') return found;
    throw new GryphusError('not-found', `No job is named '${name}', which this one depends on.`);
  };
  const terms = dependency.terms
    .map((term) =>
      'targets' in term
        ? { ...term, targets: term.targets.flatMap((one) => (one.name === undefined ? [one] : named(one.name))) }
        : term,
    )
    .filter((term) => !('targets' in term) || term.targets.length > 0);
  if (terms.length === 0) delete wishes.dependency;
  else wishes.dependency = printDependency({ ...dependency, terms });
}

/** A dry run writes no copy. */
function dryExecutable({ file, cwd = process.cwd() }: SubmitRequest): string {
  return file === undefined || file === '-' ? '/bin/sh' : resolve(cwd, file);
}

/** Writes the copy once for each content; its directory has the content's name. */
function keep(paths: Paths, text: string, name: string): string {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 20);
  const dir = join(scriptsDir(paths), hash);
  const file = join(dir, name);
  if (existsSync(file)) utimesSync(dir, new Date(), new Date());
  else {
    makeDirs(dir);
    writeWhole(file, text, 0o700);
  }
  return file;
}

function scriptsDir({ spoolDir }: Paths): string {
  return join(spoolDir, '.scripts');
}

const MOST_SCRIPTS = 2000;
const UNUSED_MS = 30 * 24 * 3600 * 1000;

/** Removes copies that no job in the queue runs and that nobody has submitted for a month. */
async function pruneScripts(paths: Paths, queue: Queue): Promise<void> {
  const dir = scriptsDir(paths);
  const all = readdirSync(dir);
  if (all.length <= MOST_SCRIPTS) return;
  const old = all.filter((name) => Date.now() - statSync(join(dir, name)).mtimeMs > UNUSED_MS);
  if (old.length === 0) return;
  const used = new Set<string>();
  for (const { cluster } of await queue.clusters()) {
    const command = (await queue.cluster(cluster))?.attrs.get('Cmd') ?? '';
    used.add(/\/\.scripts\/(\w+)\//.exec(command)?.[1] ?? '');
  }
  for (const name of old) if (!used.has(name)) rmSync(join(dir, name), { recursive: true, force: true });
}
