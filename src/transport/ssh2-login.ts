import type { AnyAuthMethod } from 'ssh2';
import { asError, GryphusError } from '../errors.ts';
import { certificateExpired, needsLogin, TYPED_METHODS, USE_OPENSSH } from './login-errors.ts';
import { type LoginKey, type LoginKeys, loginKeys } from './login-keys.ts';
import type { OpenedKeys } from './key-files.ts';
import type { Prompt } from './prompt.ts';
import type { SshSettings } from './ssh-settings.ts';
import { signerKey } from './ssh2-signer.ts';
import { oneLine } from '../util/plain-text.ts';

const TYPED_TRIES = 3;
/** The most characters shown of a line or question of a server. */
const MOST_ASKED = 1000;

/** One log-in: which methods to try in turn, whom to ask, and what to report if none was accepted. */
export class Login {
  readonly #label: string;
  readonly #settings: SshSettings;
  readonly #prompt: Prompt | undefined;
  readonly #opened: OpenedKeys;
  /** Called with true while a person is being asked, to stop the clock. */
  readonly #asking: (asking: boolean) => void;
  readonly #abort: (error: GryphusError) => void;
  readonly #tried: string[] = [];
  #found: LoginKeys | undefined;
  #keys: LoginKey[] = [];
  #offered: readonly string[] = [];
  #typed = 0;

  constructor(
    label: string,
    settings: SshSettings,
    how: {
      readonly prompt: Prompt | undefined;
      readonly opened: OpenedKeys;
      readonly asking: (asking: boolean) => void;
      readonly abort: (error: GryphusError) => void;
    },
  ) {
    this.#label = label;
    this.#settings = settings;
    this.#prompt = how.prompt;
    this.#opened = how.opened;
    this.#asking = how.asking;
    this.#abort = how.abort;
  }

  /** The next method to try, given those that the server still accepts (`null` at first); false if there is none. */
  async next(left: readonly string[] | null): Promise<AnyAuthMethod | false> {
    const username = this.#settings.user;
    if (left === null) return { type: 'none', username };
    this.#offered = left;
    if (this.#found === undefined) {
      const ask = (question: string): Promise<string | undefined> => this.#passphrase(question);
      this.#found = await loginKeys(this.#settings, this.#opened, ask, Date.now());
      this.#keys = [...this.#found.keys];
    }
    if (left.includes('publickey')) {
      const key = this.#keys.shift();
      if (key !== undefined) {
        this.#tried.push(key.name);
        const blob = key.blob ?? (await key.reveal());
        return { type: 'publickey', username, key: signerKey({ blob, sign: (data) => key.sign(data) }) };
      }
    }
    if (this.#prompt === undefined || this.#typed >= TYPED_TRIES) return false;
    if (left.includes('keyboard-interactive')) {
      this.#typed++;
      this.#tried.push('keyboard-interactive');
      return {
        type: 'keyboard-interactive',
        username,
        prompt: (name, instructions, _language, prompts, finish) => {
          const questions = prompts.map(({ prompt, echo }) => ({ text: this.#quoted(prompt), echo: echo ?? false }));
          const title = `${name}\n${instructions}`
            .split('\n')
            .filter((line) => oneLine(line) !== '')
            .map((line) => this.#quoted(line))
            .join('\n');
          void this.#ask('keyboard-interactive', title, questions).then((answers) =>
            answers === undefined
              ? this.#abort(this.#needsLogin('and its questions were not answered'))
              : finish([...answers]),
          );
        },
      };
    }
    if (!left.includes('password')) return false;
    this.#typed++;
    this.#tried.push('password');
    const answers = await this.#ask('password', '', [{ text: `Password of ${this.#label}: `, echo: false }]);
    const password = answers?.[0];
    if (password === undefined) throw this.#needsLogin('and no password was typed');
    return { type: 'password', username, password };
  }

  /** Why nothing was accepted. */
  refusal(): GryphusError {
    const expired = this.#found?.expired[0];
    if (expired !== undefined) return certificateExpired(this.#label, expired);
    if (this.#prompt === undefined && this.#offered.some((method) => TYPED_METHODS.has(method))) {
      return this.#needsLogin('and there is no terminal to type it');
    }
    const tried =
      this.#tried.length === 0
        ? 'there was no key to try'
        : `it accepted none of ${[...new Set(this.#tried)].join(', ')}`;
    return new GryphusError('login-refused', `${this.#label} refused the log-in: ${tried}.`, {
      suggestions: [
        ...(this.#found?.unusable ?? []).map((why) => `This key was skipped: ${why}.`),
        `The server accepts ${this.#offered.join(', ') || 'no known method'}; check user name and IdentityFile.`,
        ...this.#byOpenssh(),
      ],
    });
  }

  /** A server's text is marked as its own, as in OpenSSH: it could imitate a question of ours. */
  #quoted(text: string): string {
    return `(${this.#label}) ${oneLine(text.slice(0, MOST_ASKED))}${/\s$/.test(text) ? ' ' : ''}`;
  }

  #needsLogin(why: string): GryphusError {
    return needsLogin(this.#label, this.#offered, why, this.#byOpenssh());
  }

  /** Kerberos and keys in hardware need the system's ssh. */
  #byOpenssh(): readonly string[] {
    if (this.#offered.some((method) => method.startsWith('gssapi'))) return [`For Kerberos: ${USE_OPENSSH}`];
    return this.#found?.unusable.some((why) => /\bsk-/.test(why)) ? [`For a key in hardware: ${USE_OPENSSH}`] : [];
  }

  async #passphrase(question: string): Promise<string | undefined> {
    return (await this.#ask('passphrase', '', [{ text: question, echo: false }]))?.[0];
  }

  async #ask(
    kind: 'passphrase' | 'password' | 'keyboard-interactive',
    instructions: string,
    questions: readonly { text: string; echo: boolean }[],
  ): Promise<readonly string[] | undefined> {
    if (this.#prompt === undefined) return undefined;
    this.#asking(true);
    try {
      return await this.#prompt({ site: this.#label, kind, instructions, questions });
    } catch (thrown) {
      // A failed prompt counts as unanswered; its error is dropped because it may quote what was typed.
      void asError(thrown);
      return undefined;
    } finally {
      this.#asking(false);
    }
  }
}
