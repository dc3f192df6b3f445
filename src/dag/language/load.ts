import type { DagGraph } from './graph.ts';
import { directoryOf, inDirectory } from './names.ts';
import type { DagPlace, Problem } from './problem.ts';
import { DEFAULT_SETTINGS, readSettings, type DagSettings } from './settings.ts';
import type { Command } from './commands.ts';
import { Builder } from './build.ts';
import { eachCommand } from './parse.ts';
import type { DagSource } from './source.ts';
import { FOR_THE_MANAGER, mentionsTheManager } from './syntax.ts';

export interface LoadOptions {
  /** Read each DAG file, and run its nodes, in the file's own directory (`-usedagdir`). */
  readonly useDagDir?: boolean;
  /** The CONFIG file named on the command line. */
  readonly configFile?: string;
  /** Settings that override those of the CONFIG file. */
  readonly settings?: Partial<DagSettings>;
  /** Added to the priority of every node (`-priority`); 0 leaves it to the settings. */
  readonly priority?: number;
  /** Whether a POST script runs after a failed PRE script; DAGMAN_ALWAYS_RUN_POST by default. */
  readonly alwaysRunPost?: boolean;
  /** Send no mail about the DAG and its nodes' jobs; DAGMAN_SUPPRESS_NOTIFICATION by default. */
  readonly suppressNotification?: boolean;
}

/** The environment of a DAG manager: variables to set, and names (or patterns) of the user's variables to pass on. */
export interface ManagerEnvironment {
  readonly set: ReadonlyMap<string, string>;
  readonly get: readonly string[];
}

export interface LoadedDag {
  /** The graph as far as it could be read; run it only if none of the problems is an error. */
  readonly dag: DagGraph;
  readonly settings: DagSettings;
  readonly configFile: string | undefined;
  /** `name = value` lines of SET_JOB_ATTR: attributes of the DAG manager's own job. */
  readonly attributes: readonly string[];
  /** From ENV: assignments to add to the DAG manager's environment, and names to take from the user's. */
  readonly environment: ManagerEnvironment;
  readonly problems: readonly Problem[];
}

/**
 * Reads the DAG that `files` form together. Never throws because of their contents: `problems` lists all that is wrong.
 */
export function loadDag(files: readonly string[], source: DagSource, options: LoadOptions = {}): LoadedDag {
  const problems: Problem[] = [];
  const report = (problem: Problem): void => {
    problems.push(problem);
  };
  const read: DagText[] = [];
  for (const file of files) {
    const text = source.read(file);
    if (text === undefined) {
      report({
        file,
        line: 0,
        severity: 'error',
        message: `Failed to open DAG ${file}: Provided file path does not exist`,
      });
    } else read.push({ file, dir: options.useDagDir === true ? directoryOf(file) : '', text });
  }
  const own = read.map((one) => forTheManager(one, report));
  const configFile = theConfig(read, own, options.configFile, report);
  const settings = {
    ...settingsOf(configFile?.file, configFile?.place, source, report),
    ...options.settings,
    ...settingsAsked(options),
  };
  const builder = new Builder(source, settings, report, options.useDagDir === true);
  const munge = files.length > 1 && settings.DAGMAN_MUNGE_NODE_NAMES;
  read.forEach(({ file, dir, text }, i) => builder.addFile(file, dir, text, munge ? `${i}.` : ''));
  const dag = builder.finish(options.priority || settings.DAGMAN_DEFAULT_PRIORITY);
  const attributes = own.flatMap((commands) =>
    commands.flatMap(({ command: c }) => (c.cmd === 'set-attr' ? [c.line] : [])),
  );
  const environment = own.flat().flatMap(({ command: c }) => (c.cmd === 'env' ? [c] : []));
  return {
    dag,
    settings,
    configFile: configFile?.file,
    attributes,
    environment: {
      set: new Map(environment.flatMap((c) => (c.action === 'SET' ? c.set : []))),
      get: environment.flatMap((c) => (c.action === 'GET' ? c.names : [])),
    },
    problems,
  };
}

function settingsAsked({ alwaysRunPost, suppressNotification }: LoadOptions): Partial<DagSettings> {
  return {
    ...(alwaysRunPost === undefined ? {} : { DAGMAN_ALWAYS_RUN_POST: alwaysRunPost }),
    ...(suppressNotification === undefined ? {} : { DAGMAN_SUPPRESS_NOTIFICATION: suppressNotification }),
  };
}

interface DagText {
  readonly file: string;
  readonly dir: string;
  readonly text: string;
}

interface Placed {
  readonly command: Command;
  readonly line: number;
}

/** The commands of one DAG file that concern the manager's own job. */
function forTheManager({ file, text }: DagText, report: (problem: Problem) => void): readonly Placed[] {
  const found: Placed[] = [];
  if (!mentionsTheManager(text)) return found;
  eachCommand(text, file, FOR_THE_MANAGER, report, (command, line) => found.push({ command, line }), 'skip');
  return found;
}

/** The files of a DAG and the command line together may name only one CONFIG file. */
function theConfig(
  files: readonly DagText[],
  own: readonly (readonly Placed[])[],
  given: string | undefined,
  report: (problem: Problem) => void,
): { readonly file: string; readonly place?: DagPlace } | undefined {
  let found: { readonly file: string; readonly place?: DagPlace } | undefined =
    given === undefined ? undefined : { file: given };
  files.forEach(({ file, dir }, i) => {
    for (const { command, line } of own[i] ?? []) {
      if (command.cmd !== 'config') continue;
      const path = inDirectory(dir, command.file);
      if (found === undefined) found = { file: path, place: { file, line } };
      else if (found.file !== path) {
        const message = `Conflicting DAGMan config files specified: ${found.file} and ${path}`;
        const remedy = 'A DAG has one configuration file; put all settings into it.';
        report({ file, line, severity: 'error', command: 'CONFIG', message, remedy });
      }
    }
  });
  return found;
}

/** `place`: that of the CONFIG command that names the file, if one does. */
function settingsOf(
  file: string | undefined,
  place: DagPlace | undefined,
  source: DagSource,
  report: (problem: Problem) => void,
): DagSettings {
  if (file === undefined) return DEFAULT_SETTINGS;
  const text = source.read(file);
  if (text === undefined) {
    const message = `Can't read DAGMan config file: ${file}`;
    report({ ...(place ?? { file, line: 0 }), severity: 'error', message });
    return DEFAULT_SETTINGS;
  }
  return readSettings(text, file, report);
}
