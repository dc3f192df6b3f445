/** One question of a log-in. */
export interface PromptQuestion {
  /** What the server or the key asks, for example `Verification code: `. */
  readonly text: string;
  /** Whether the answer may be seen while it is typed. */
  readonly echo: boolean;
}

export interface PromptRequest {
  /** The site's label (`user@host:port`). */
  readonly site: string;
  /** `passphrase`: of a key file; the others come from the server. */
  readonly kind: 'passphrase' | 'password' | 'keyboard-interactive';
  /** The server's own words ahead of the questions, often empty. */
  readonly instructions: string;
  readonly questions: readonly PromptQuestion[];
}

/**
 * Asks a person. Answers one string for each question, or `undefined` when nobody answered (the log-in then fails
 * with 'needs-login'). Whoever opens a transport decides how: on the terminal, or over a socket in a process that
 * keeps the connection for others. Answers are kept in memory only, and never logged.
 */
export type Prompt = (request: PromptRequest) => Promise<readonly string[] | undefined>;
