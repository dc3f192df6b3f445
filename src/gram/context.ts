import type { Attempts } from './attempts.ts';
import type { Conversation } from './conversation.ts';
import type { GramCredentials } from './credentials.ts';
import type { GramStore } from './store.ts';

/** What the calls of a GRAM site work with. */
export interface GramContext {
  readonly store: GramStore;
  readonly attempts: Attempts;
  readonly conversation: Conversation;
  readonly credentials: GramCredentials;
  /** Our GASS server is open, and where; where it was not, the gatekeeper was asked with this proxy. */
  readonly ready: (proxy: string) => Promise<string>;
}
