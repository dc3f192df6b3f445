import * as z from 'zod';
import { boolAttr, intAttr, parseAttr, realAttr, stringAttr } from './attr.ts';
import { booleanOf, integerOf, syntaxReason } from './calculate.ts';
import type { Complaints } from './complaints.ts';
import type { Draft } from './draft.ts';
import type { Expander } from './expand.ts';
import type { SourcePlace } from './fault.ts';
import { badInput } from './fault.ts';
import type { JobId } from '../job/ids.ts';
import type { MacroTable } from './macros.ts';
import type { Missing } from './missing.ts';
import type { MachineFacts, SubmitPolicy } from './options.ts';
import { absolutePath } from './source.ts';
import type { FileFacts, SubmitWorld } from './world.ts';

/** What all jobs of a cluster have in common once its universe is known. */
export const CLUSTER_KIND = z.strictObject({
  /** HTCondor's number: 5 vanilla, 7 scheduler, 9 grid, 12 local, … */
  universe: z.int(),
  docker: z.boolean(),
  container: z.boolean(),
});
export type ClusterKind = z.infer<typeof CLUSTER_KIND>;

export interface MakerScope {
  readonly macros: MacroTable;
  readonly expander: Expander;
  readonly world: SubmitWorld;
  readonly cwd: string;
  readonly machine: MachineFacts;
  readonly policy: SubmitPolicy;
  /** The description's file name as given; `undefined` if it was read from standard input. */
  readonly file: string | undefined;
  /** Unix seconds. */
  readonly now: number;
  /** Variables of the submitter's environment that have been looked up. */
  readonly seen: Map<string, string>;
  /** The job is made long after the submit and elsewhere, so nothing is checked or measured. */
  readonly late: boolean;
  readonly complaints: Complaints;
  readonly missing: Missing;
  /** Reports each text once. */
  warn(message: string, line?: number): void;
}

const INT32 = 2n ** 31n;

/**
 * What a command works with: the description's values, the ad in the making, and what the commands share among
 * themselves.
 */
export class JobMaker {
  readonly draft: Draft;
  readonly scope: MakerScope;
  readonly kind: ClusterKind;
  /** The queue statement, to blame if no other line is. */
  readonly place: SourcePlace;
  readonly id: JobId;

  constructor(scope: MakerScope, draft: Draft, kind: ClusterKind, place: SourcePlace, id: JobId) {
    this.scope = scope;
    this.draft = draft;
    this.kind = kind;
    this.place = place;
    this.id = id;
  }

  get world(): SubmitWorld {
    return this.scope.world;
  }

  /** Whether this is the first job of the cluster, whose ad the others are based on. */
  get first(): boolean {
    return this.draft.base === undefined;
  }

  /** A command's expanded value, or that of its other name if the first has none. `undefined` if empty. */
  param(name: string, other?: string): string | undefined {
    const { macros, expander } = this.scope;
    const raw = macros.lookup(name) ?? (other === undefined ? undefined : macros.lookup(other));
    if (raw === undefined || raw === '') return undefined;
    expander.place = this.placeOf(name, other);
    const value = expander.expand(raw);
    return value === '' ? undefined : value;
  }

  boolParam(name: string, other?: string): boolean | undefined {
    const text = this.param(name, other);
    if (text === undefined) return undefined;
    const value = booleanOf(text);
    if (value === undefined) {
      throw this.fault(name, `${name}=${text} is invalid, must eval to a boolean.`, ['Write true or false.'], other);
    }
    return value;
  }

  intParam(name: string, other?: string, range: 'int32' | 'int64' = 'int64'): bigint | undefined {
    const text = this.param(name, other);
    if (text === undefined) return undefined;
    const value = integerOf(text);
    if (value === undefined || (range === 'int32' && (value < -INT32 || value >= INT32 - 1n))) {
      throw this.fault(name, `${name}=${text} is invalid, must eval to an integer.`, [], other);
    }
    return value;
  }

  placeOf(name: string, other?: string): SourcePlace {
    const macro = this.scope.macros.find(name) ?? (other === undefined ? undefined : this.scope.macros.find(other));
    return macro && macro.origin !== 'loop' && macro.origin !== 'internal' ? macro.place : this.place;
  }

  /** An error to throw, on the line of the command to blame. */
  fault(command: string, text: string, suggestions: readonly string[] = [], other?: string): Error {
    return badInput(this.placeOf(command, other), text, suggestions);
  }

  setString(name: string, value: string): void {
    this.draft.set(name, stringAttr(value));
  }

  setInt(name: string, value: number | bigint): void {
    this.draft.set(name, intAttr(value));
  }

  setReal(name: string, value: number): void {
    this.draft.set(name, realAttr(value));
  }

  setBool(name: string, value: boolean): void {
    this.draft.set(name, boolAttr(value));
  }

  /**
   * Sets an attribute to an expression that the user wrote (in `command`, if that differs from the attribute's name);
   * `remedy`: what to write instead.
   */
  setExpr(
    name: string,
    text: string,
    command = name,
    remedy = 'It must be a ClassAd expression; strings need double quotes.',
  ): void {
    const attr = parseAttr(text);
    if (!attr) {
      throw this.fault(command, `Parse error in expression: ${name} = ${text}`, [
        `In the expression, ${syntaxReason(text)}.`,
        remedy,
      ]);
    }
    this.draft.set(name, attr);
  }

  /** The job's initial directory, to which relative names of its files refer. */
  get iwd(): string {
    return this.draft.string('#Iwd') ?? this.scope.cwd;
  }

  set iwd(path: string) {
    this.setString('#Iwd', path);
  }

  /** The first word of grid_resource. */
  get gridType(): string {
    return this.draft.string('#GridType') ?? '';
  }

  set gridType(type: string) {
    this.setString('#GridType', type);
  }

  /** An absolute path without doubled slashes; relative names refer to the initial directory. */
  fullPath(name: string): string {
    return compressPath(absolutePath(name, this.iwd));
  }

  look(name: string): FileFacts | undefined {
    return this.world.look(this.fullPath(name));
  }

  /** The size in KB, rounded up; for a directory, of everything below it; 0 for URLs and missing files. */
  sizeKb(name: string): number {
    const facts = isUrl(name) ? undefined : this.look(name);
    if (!facts) return 0;
    return Math.ceil((facts.directory ? this.world.treeBytes(this.fullPath(name)) : facts.bytes) / 1024);
  }

  /** A variable of the submitter's environment. */
  env(name: string): string | undefined {
    const value = this.world.environment[name];
    if (value !== undefined) this.scope.seen.set(name, value);
    return value;
  }

  warn(message: string, command?: string): void {
    this.scope.warn(message, command === undefined ? undefined : this.placeOf(command).line);
  }
}

export function compressPath(path: string): string {
  return path.replace(/[/\\]{2,}/g, (run) => run.charAt(0));
}

export function isUrl(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:\/\/./s.test(text);
}

/** The scheme of a URL; for `a+b://` only b. */
export function urlScheme(url: string): string {
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.replace(/^.*[+.-]/, '') ?? '';
}

/** One command, or a family of them: reads its part of the description and writes it into the ad. */
export interface Step {
  /** Unique within a description; a stored cluster refers to it. */
  readonly name: string;
  run(job: JobMaker): void;
}
