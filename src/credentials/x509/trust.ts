import type { Certificate } from './certificate.ts';
import type { RevocationList } from './crl.ts';
import type { Name } from './name.ts';
import type { SigningPolicy } from './signing-policy.ts';

/** The trusted authorities; a CA directory is one implementation. */
export interface Trust {
  /** Its name, for messages. */
  readonly where: string;
  authorities(subject: Name): readonly Certificate[];
  signingPolicy(authority: Name): readonly SigningPolicy[] | undefined;
  revocationLists(authority: Name): readonly RevocationList[];
  /** The file in which the policy is expected, for messages. */
  policyFile(authority: Name): string;
}
