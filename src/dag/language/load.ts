import type { DagGraph } from '../graph.ts';
import { inDirectory } from '../names.ts';
import { directoryOf, fileNameOf } from '../names.ts';
import type { Problem } from '../problem.ts';
import { DEFAULT_SETTINGS, readSettings, type Settings } from '../settings.ts';
import type { Command } from './commands.ts';
import { Builder } from './build.ts';
import { type ParsedFile, parseCommands } from './parse.ts';

/** Where DAG files are read from. Paths are as in the DAG, relative to the DAG manager's directory. */
export interface DagSource {
  /** The file's text; `undefined` where it is not there or cannot be read. */
  read(path: string): string | undefined;
  /** The one name of the file, by which a file that includes itself is found. */
  absolute(path: string): string;
}

export interface LoadOptions {
  /** Each DAG file is read, and its nodes run, in the file's own directory (`-usedagdir`). */
  readonly useDagDir?: boolean;
  /** The CONFIG file named on the command line. */
  readonly configFile?: string;
  /** Settings that win over those of the CONFIG file. */
  readonly settings?: Partial<Settings>;
  /** Added to the priority of every node (`-priority`). */
  readonly priority?: number;
}

export interface LoadedDag {
  /** The graph as far as it could be read; run it only if no problem is an error. */
  readonly dag: DagGraph;
  readonly settings: Settings;
  readonly configFile: string | undefined;
  /** `name = value` lines of SET_JOB_ATTR: attributes of the DAG manager's own job. */
  readonly attributes: readonly string[];
  /** Of ENV: assignments to add to the DAG manager's environment, and names to take from the user's. */
  readonly environment: { readonly set: readonly string[]; readonly get: readonly string[] };
  readonly problems: readonly Problem[];
}

/** Reads the DAG that `files` make together. Never throws for what is in them: `problems` says all that is wrong. */
export function loadDag(files: readonly string[], source: DagSource, options: LoadOptions = {}): LoadedDag {
  const problems: Problem[] = [];
  const report = (problem: Problem): void => {
    problems.push(problem);
  };
  const parsed: { readonly file: string; readonly dir: string; readonly parsed: ParsedFile }[] = [];
  for (const file of files) {
    const text = source.read(file);
    if (text === undefined) {
      report({ file, line: 0, severity: 'error', message: `Failed to open DAG ${file}: Provided file path does not exist` });
      continue;
    }
    const dir = options.useDagDir === true ? directoryOf(file) : '';
    parsed.push({ file: dir === '' ? file : fileNameOf(file), dir, parsed: parseCommands(text, file, report) });
  }
  const configFile = theConfig(parsed, options.configFile, report);
  const settings = { ...settingsOf(configFile, source, report), ...options.settings };
  const builder = new Builder(source, settings, report, options.useDagDir === true);
  const munge = files.length > 1 && settings.DAGMAN_MUNGE_NODE_NAMES;
  parsed.forEach((file, i) => builder.addFile(file.file, file.dir, file.parsed, munge ? `${i}.` : ''));
  const dag = builder.finish(settings.DAGMAN_DEFAULT_PRIORITY + (options.priority ?? 0));
  return { dag, settings, configFile, ...forTheManager(parsed.map((f) => f.parsed.commands)), problems };
}

/** All files of a DAG, and the command line, may name one CONFIG file between them. */
function theConfig(
  files: readonly { readonly file: string; readonly dir: string; readonly parsed: ParsedFile }[],
  given: string | undefined,
  report: (problem: Problem) => void,
): string | undefined {
  let found = given;
  for (const { file, dir, parsed } of files) {
    parsed.commands.forEach((command, i) => {
      if (command.cmd !== 'config') return;
      const path = inDirectory(dir, command.file);
      if (found === undefined) found = path;
      else if (found !== path) {
        report({
          file,
          line: parsed.lines[i] ?? 0,
          severity: 'error',
          command: 'CONFIG',
          message: `Conflicting DAGMan config files specified: ${found} and ${path}`,
          mend: 'A DAG has one configuration file; put all settings into it.',
        });
      }
    });
  }
  return found;
}

function settingsOf(file: string | undefined, source: DagSource, report: (problem: Problem) => void): Settings {
  if (file === undefined) return DEFAULT_SETTINGS;
  const text = source.read(file);
  if (text === undefined) {
    report({ file, line: 0, severity: 'error', message: `Can't read DAGMan config file: ${file}` });
    return DEFAULT_SETTINGS;
  }
  return readSettings(text, file, report);
}

function forTheManager(files: readonly (readonly Command[])[]): Pick<LoadedDag, 'attributes' | 'environment'> {
  const attributes: string[] = [];
  const set: string[] = [];
  const get: string[] = [];
  for (const command of files.flat()) {
    if (command.cmd === 'set-attr') attributes.push(command.line);
    if (command.cmd === 'env') (command.action === 'SET' ? set : get).push(command.variables);
  }
  return { attributes, environment: { set, get } };
}
