/** A question asked at log-in. */
export interface PromptQuestion {
  /**
   * The question about the key, or from the server, which is marked as its own and without control characters:
   * `(user@host) Verification code: `.
   */
  readonly text: string;
  /** Whether the answer may be shown as it is typed. */
  readonly echo: boolean;
}

export interface PromptRequest {
  /** The site's label (`user@host:port`). */
  readonly site: string;
  /** `passphrase`: of a key file; the others come from the server. */
  readonly kind: 'passphrase' | 'password' | 'keyboard-interactive';
  /** The server's text before the questions, each line marked in the same way; often empty. */
  readonly instructions: string;
  readonly questions: readonly PromptQuestion[];
}

/**
 * Asks a person. Returns one string per question, or `undefined` if nobody answered (the log-in then fails with
 * 'needs-login'). The opener of a transport decides how: on the terminal, or through a socket in a process that keeps
 * the connection for others. Answers stay in memory and are never logged.
 */
export type Prompt = (request: PromptRequest) => Promise<readonly string[] | undefined>;
