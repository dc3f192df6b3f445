import { checkExpression } from '../job/values.ts';
import { CHIRP_ERROR, DELAYED_NAME } from '../site/chirp.ts';

/** HTCondor's CHIRP_DELAYED_UPDATE_MAX_ATTRS. */
const MOST = 100;
const LONGEST = 993;
/** condor_starter's answer if it refuses such an attribute. */
const REFUSED = 1;

/** What a job set by set_job_attr_delayed and home does not know yet. */
export class DelayedAttributes {
  readonly #jobAd: (name: string) => string | undefined;
  readonly #values = new Map<string, { readonly name: string; readonly text: string }>();
  readonly #unsent = new Set<string>();

  /** `jobAd`: the job's ad as it was when it started. */
  constructor(jobAd: (name: string) => string | undefined) {
    this.#jobAd = jobAd;
  }

  get(name: string): string | undefined {
    return this.#values.get(name.toLowerCase())?.text ?? this.#jobAd(name);
  }

  /** 0, or the answer of a refusal. */
  set(name: string, text: string): number {
    const low = name.toLowerCase();
    if (!DELAYED_NAME.test(name) || (this.#values.size >= MOST && !this.#values.has(low))) return REFUSED;
    if (Buffer.byteLength(text) > LONGEST) return CHIRP_ERROR.unknown;
    try {
      checkExpression(text, name);
    } catch {
      return CHIRP_ERROR.invalidRequest;
    }
    this.#values.set(low, { name, text });
    this.#unsent.add(low);
    return 0;
  }

  /** Names and texts that home has not been told, which it is told now. */
  take(): string[] {
    const words = [...this.#unsent].flatMap((low) => {
      const value = this.#values.get(low);
      return value ? [value.name, value.text] : [];
    });
    this.#unsent.clear();
    return words;
  }
}
