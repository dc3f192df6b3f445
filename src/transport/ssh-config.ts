import { createHash } from 'node:crypto';
import { GryphusError } from '../errors.ts';
import type { Directive } from './ssh-config-parser.ts';
import { matchesPatterns } from './ssh-pattern.ts';

/** What the conditions in a configuration are matched against. */
export interface MatchContext {
  /** The host as the user wrote it. */
  readonly host: string;
  /** The remote user and port if the site names them; they override the configuration. */
  readonly user: string | undefined;
  readonly port: number | undefined;
  readonly localUser: string;
  /** Tokens of `Match exec` that depend on this machine alone: `%d`, `%i`, `%L`, `%l`. */
  readonly localTokens: Readonly<Record<string, string>>;
  /** Runs the command of `Match exec`; returns true if it exits with 0. */
  readonly exec: (command: string) => boolean;
}

/**
 * Values by keyword in lower case, as written. The first value of a keyword wins; IdentityFile and CertificateFile
 * accumulate. `match`: a criterion that only the system's ssh can decide; here it never holds.
 */
export type ConfigValues = ReadonlyMap<string, readonly string[]>;

const ADDS_UP = new Set(['identityfile', 'certificatefile']);
/** Criteria of newer versions, about the network of this machine, the session or ssh itself. */
const BEYOND = new Set(['localnetwork', 'sessiontype', 'command', 'version']);
const LISTS = new Set(['userknownhostsfile', 'globalknownhostsfile']);

/**
 * The values that apply to a host (ssh_config(5)): files are read in order, the first value of a keyword wins, and Host
 * and Match blocks restrict what follows them. As in OpenSSH, `Match final` makes a second pass.
 */
export function configValues(files: readonly (readonly Directive[])[], context: MatchContext): ConfigValues {
  const evaluation = new Evaluation(context);
  for (const directives of files) evaluation.walk(directives, true, false);
  if (evaluation.wantsFinal) {
    evaluation.settleHostName();
    for (const directives of files) evaluation.walk(directives, true, true);
  }
  return evaluation.values;
}

class Evaluation {
  readonly values = new Map<string, readonly string[]>();
  readonly #context: MatchContext;
  wantsFinal = false;

  constructor(context: MatchContext) {
    this.#context = context;
    if (context.user !== undefined) this.values.set('user', [context.user]);
    if (context.port !== undefined) this.values.set('port', [String(context.port)]);
  }

  /** A file included by an inactive block stays inactive, whatever Host lines it has. */
  walk(directives: readonly Directive[], enclosing: boolean, final: boolean): void {
    let active = enclosing;
    // Seen with OpenSSH 9.2: Host lines in the final pass match the name that the first pass found.
    const host = final ? this.#hostName() : this.#context.host;
    for (const directive of directives) {
      if (directive.keyword === 'host') active = enclosing && matchesPatterns(host, directive.args);
      else if (directive.keyword === 'match') active = enclosing && this.#matches(directive, final);
      else if (directive.keyword === 'include') for (const file of directive.include) this.walk(file, active, final);
      else if (active) this.#take(directive);
    }
  }

  /** The final pass uses the name that the first pass found and does not change it. */
  settleHostName(): void {
    this.values.set('hostname', [this.#hostName().replaceAll('%', '%%')]);
  }

  #take({ keyword, args }: Directive): void {
    if (keyword === 'proxyjump' || keyword === 'proxycommand') {
      // Of these two keywords, the first to occur wins.
      if (this.values.has('proxyjump') || this.values.has('proxycommand')) return;
    }
    if (ADDS_UP.has(keyword)) {
      const value = args[0] ?? '';
      const before = this.values.get(keyword) ?? [];
      if (!before.includes(value)) this.values.set(keyword, [...before, value]);
    } else if (!this.values.has(keyword)) {
      this.values.set(keyword, LISTS.has(keyword) ? args : [args.join(' ')]);
    }
  }

  #matches({ args, file, line }: Directive, final: boolean): boolean {
    const bad = (why: string): GryphusError => new GryphusError('bad-config', `${file} line ${line}: Match ${why}.`);
    let all = true;
    for (let at = 0; at < args.length; at++) {
      const word = args[at] ?? '';
      const negated = word.startsWith('!');
      const name = (negated ? word.slice(1) : word).toLowerCase().replace(/=.*$/s, '');
      let holds: boolean;
      if (name === 'all') holds = true;
      else if (name === 'canonical') holds = false;
      else if (name === 'final') {
        this.wantsFinal = true;
        holds = final;
      } else {
        const equals = word.indexOf('=');
        const value = equals === -1 ? args[++at] : word.slice(equals + 1);
        if (value === undefined) throw bad(`${name} has no value`);
        const found = this.#criterion(name, value, all);
        if (found === undefined) throw bad(`has no criterion "${name}"`);
        holds = found;
      }
      all &&= holds !== negated;
    }
    return all;
  }

  #criterion(name: string, value: string, soFar: boolean): boolean | undefined {
    const patterns = value.split(',');
    switch (name) {
      case 'host':
        return matchesPatterns(this.#hostName(), patterns);
      case 'originalhost':
        return matchesPatterns(this.#context.host, patterns);
      case 'user':
        return matchesPatterns(this.#user(), patterns);
      case 'localuser':
        return matchesPatterns(this.#context.localUser, patterns);
      case 'tagged':
        return matchesPatterns(this.values.get('tag')?.[0] ?? '', patterns);
      case 'exec':
        // Like OpenSSH, runs the command only if no earlier criterion has failed.
        return soFar && this.#context.exec(this.#expand(value));
      default:
        if (!BEYOND.has(name)) return undefined;
        if (soFar && !this.values.has('match')) this.values.set('match', [name]);
        return false;
    }
  }

  #user(): string {
    return this.values.get('user')?.[0] ?? this.#context.localUser;
  }

  #hostName(): string {
    const named = this.values.get('hostname')?.[0];
    return named === undefined
      ? this.#context.host
      : expandTokens(named, { '%': '%', h: this.#context.host }, 'HostName');
  }

  #expand(command: string): string {
    const tokens = {
      ...this.#context.localTokens,
      h: this.#hostName(),
      j: this.values.get('proxyjump')?.[0] ?? '',
      k: this.values.get('hostkeyalias')?.[0] ?? this.#context.host,
      n: this.#context.host,
      p: this.values.get('port')?.[0] ?? '22',
      r: this.#user(),
      u: this.#context.localUser,
    };
    return expandTokens(command, withHash(tokens), 'Match exec');
  }
}

/** Adds `%%`, and `%C`, the hash of `%l%h%p%r%j`. */
export function withHash<T extends Readonly<Record<string, string>>>(tokens: T): T & Readonly<Record<string, string>> {
  const text = ['l', 'h', 'p', 'r', 'j'].map((token) => tokens[token] ?? '').join('');
  return { ...tokens, '%': '%', C: createHash('sha1').update(text).digest('hex') };
}

/** Replaces `%x` by `tokens.x`; an unknown token is 'bad-config', which names the keyword. */
export function expandTokens(text: string, tokens: Readonly<Record<string, string>>, keyword: string): string {
  return text.replace(/%(.?)/gs, (_, token: string) => {
    const value = tokens[token];
    if (value === undefined) throw new GryphusError('bad-config', `${keyword} "${text}" has an unknown %${token}.`);
    return value;
  });
}
