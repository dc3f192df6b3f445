/** When a retry can help. */
export type Retry = 'never' | 'later' | 'after-credential';

interface Rule {
  readonly retry: Retry;
  /** Exit status of a command that ends with this error (sysexits.h where one fits). */
  readonly exit: number;
  /** HTCondor's HoldReasonCode for a job that is held for it. */
  readonly hold?: number;
}

/**
 * Every way in which Gryphus refuses or fails; the list is closed. Each code has an exit status for commands and, where
 * it fits, a hold code for jobs. Hold codes are HTCondor's (manual, "Machine-readable hold codes").
 */
export const ERRORS = {
  usage: { retry: 'never', exit: 2 },
  'bad-input': { retry: 'never', exit: 65 },
  'bad-config': { retry: 'never', exit: 78 },
  'not-found': { retry: 'never', exit: 1 },
  'not-permitted': { retry: 'never', exit: 77 },
  conflict: { retry: 'never', exit: 1 },
  'dag-refused': { retry: 'never', exit: 1 },
  'state-version': { retry: 'never', exit: 78 },
  'already-running': { retry: 'never', exit: 75 },
  'missing-program': { retry: 'never', exit: 69 },
  'queue-unavailable': { retry: 'later', exit: 69 },
  'taken-over': { retry: 'never', exit: 78 },
  'stale-epoch': { retry: 'never', exit: 70 },
  'url-unreachable': { retry: 'later', exit: 69, hold: 13 },
  'input-missing': { retry: 'never', exit: 66, hold: 13 },
  'output-missing': { retry: 'never', exit: 1, hold: 12 },
  'input-too-large': { retry: 'never', exit: 1, hold: 32 },
  'output-too-large': { retry: 'never', exit: 1, hold: 33 },
  'output-unwritable': { retry: 'never', exit: 73, hold: 12 },
  'disk-full': { retry: 'later', exit: 74, hold: 21 },
  'site-unknown': { retry: 'never', exit: 68, hold: 37 },
  'site-unreachable': { retry: 'later', exit: 69 },
  'site-busy': { retry: 'later', exit: 75 },
  'site-refused': { retry: 'never', exit: 1, hold: 37 },
  'host-key-changed': { retry: 'never', exit: 76, hold: 37 },
  'host-key-unknown': { retry: 'never', exit: 76, hold: 37 },
  'login-refused': { retry: 'after-credential', exit: 77 },
  'needs-login': { retry: 'after-credential', exit: 77 },
  'credential-expired': { retry: 'after-credential', exit: 77, hold: 4 },
  'credential-invalid': { retry: 'never', exit: 77, hold: 4 },
  'protocol-error': { retry: 'later', exit: 76 },
  timeout: { retry: 'later', exit: 75 },
  interrupted: { retry: 'later', exit: 130 },
  internal: { retry: 'never', exit: 70 },
} as const satisfies Record<string, Rule>;

/** The code of a `GryphusError`; for programs, which should not look at the message. */
export type ErrorCode = keyof typeof ERRORS;

interface Details {
  /** What the reader can do about it, one sentence each, in the order to try them. */
  readonly suggestions?: readonly string[];
  readonly holdSubCode?: number;
  readonly cause?: unknown;
}

/** The one form of every failure that a user or another daemon may see. `message` is one sentence. */
export class GryphusError extends Error {
  override readonly name = 'GryphusError';
  readonly code: ErrorCode;
  readonly suggestions: readonly string[];
  readonly holdSubCode: number | undefined;

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.suggestions = details.suggestions ?? [];
    this.holdSubCode = details.holdSubCode;
  }

  get retry(): Retry {
    return ERRORS[this.code].retry;
  }

  get exitCode(): number {
    return ERRORS[this.code].exit;
  }

  /** HTCondor's HoldReasonCode, when a job that meets this error is held. */
  get holdCode(): number | undefined {
    const rule: Rule = ERRORS[this.code];
    return rule.hold;
  }
}

/** Any thrown value as an Error, for messages and causes. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
