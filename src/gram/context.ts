import type { Attempts } from './attempts.ts';
import type { Conversation } from './conversation.ts';
import type { GramCredentials } from './credentials.ts';
import type { GramStore } from './store.ts';

/** What all operations of a GRAM site share. */
export interface GramContext {
  readonly store: GramStore;
  readonly attempts: Attempts;
  readonly conversation: Conversation;
  readonly credentials: GramCredentials;
  /**
   * Makes sure that our GASS server is open and returns its origin; if it was not open, asks the gatekeeper with this
   * proxy.
   */
  readonly ready: (proxy: string) => Promise<string>;
}
