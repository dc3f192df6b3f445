import { proxyAttributes, proxyInfo } from '../credentials/proxy-info.ts';
import { loadProxy } from '../credentials/store.ts';
import { asError } from '../errors.ts';
import type { SubmitPolicy } from '../submit/api.ts';

/** Reads each proxy of a submit once: its effective end, and HTCondor's attributes for a job that uses it. */
export function proxyCheck(): NonNullable<SubmitPolicy['checkProxy']> {
  const known = new Map<string, ReturnType<NonNullable<SubmitPolicy['checkProxy']>>>();
  return (path) => {
    let answer = known.get(path);
    if (answer === undefined) known.set(path, (answer = look(path)));
    return answer;
  };
}

function look(path: string): ReturnType<NonNullable<SubmitPolicy['checkProxy']>> {
  try {
    const info = proxyInfo(loadProxy(path).chain);
    if (info.kind === 'end-entity' || info.kind === 'ca' || info.kind === 'legacy-proxy') {
      return { ok: false, reason: `${path} does not hold an RFC 3820 proxy, but ${KINDS[info.kind]}` };
    }
    const expiresAt = Math.min(info.end, ...info.voms.map((one) => one.notAfter));
    return { ok: true, value: { expiresAt, attributes: proxyAttributes(info) } };
  } catch (thrown) {
    return { ok: false, reason: asError(thrown).message.replace(/\.$/, '') };
  }
}

const KINDS = {
  'end-entity': "a user's own certificate",
  ca: "an authority's certificate",
  'legacy-proxy': 'a proxy from before it',
} as const;
