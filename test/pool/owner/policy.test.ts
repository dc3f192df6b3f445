import { expect, it } from 'vitest';
import { ClassAd } from '../../../src/classad/api.ts';
import { POLICIES, POLICY_MACROS, type PolicyTexts } from '../../../src/config/owner-policies.ts';
import { CHANGING, NOTHING, setNow } from '../../../src/pool/owner/machine-attrs.ts';
import { Policy } from '../../../src/pool/owner/policy.ts';
import { adFrom } from '../../../src/pool/wire/ads.ts';

function at(texts: PolicyTexts, now: Partial<typeof NOTHING>, more: Record<string, string> = {}): ClassAd {
  return setNow(new ClassAd().chainTo(adFrom({ ...POLICY_MACROS, ...texts, ...more })), { ...NOTHING, ...now });
}

it('what is undefined or an error counts as HTCondor has it, and is said once', () => {
  const said: string[] = [];
  const texts = {
    ...POLICIES.always,
    SUSPEND: 'Nowhere',
    PREEMPT: '"x" + 1',
    KILL: 'error',
    WANT_VACATE: 'Nowhere',
    CONTINUE: 'Nowhere',
  };
  const policy = new Policy(texts, (message) => said.push(message));
  const scope = { my: at(texts, {}), target: new ClassAd(), now: 0 };
  const truths = policy.truths(scope, false, 10);
  expect(truths).toMatchObject({ suspend: false, preempt: false, kill: false, wantVacate: true, continue: false });
  expect(policy.truths(scope, false, 601)).toMatchObject({ continue: true });
  expect(said.filter((one) => one.startsWith('SUSPEND'))).toEqual(['SUSPEND is undefined here and counts as false']);
});

it('an expression that costs too much is given up, at once and with a word', () => {
  // Each names the one before twice.
  const doubled = (times: number) =>
    Object.fromEntries([
      ['A0', 'ClockMin'],
      ...Array.from({ length: times }, (_, n) => [`A${n + 1}`, `A${n} + A${n}`]),
    ]) as Record<string, string>;
  const suspends = (times: number) => {
    const said: string[] = [];
    const texts = { ...POLICIES.always, SUSPEND: `A${times} >= 0` };
    const policy = new Policy(texts, (message) => said.push(message));
    return [policy.truths({ my: at(texts, {}, doubled(times)), now: 0 }, false, 0).suspend, ...said];
  };
  expect(suspends(11)).toEqual([true]);
  const given = [false, 'SUSPEND cannot be evaluated in time here and counts as false'];
  expect(suspends(14)).toEqual(given);
  const began = performance.now();
  expect(suspends(60)).toEqual(given);
  expect(performance.now() - began).toBeLessThan(500);
});

it('nobody takes a machine of which nothing shows whether its owner is there', () => {
  const texts = POLICIES.hunter;
  const policy = new Policy(texts);
  const start = (keyboard: number | undefined) => policy.startText(at(texts, { keyboard }), CHANGING, 0);
  expect(start(undefined)).toBe('undefined');
  expect(start(10)).toBe('false');
  expect(start(1000)).toBe('true');
});

it('START keeps what it says of jobs, and shows of the owner only the truth', () => {
  const texts = { ...POLICIES.always, START: 'KeyboardIdle > 900 && TARGET.JobPrio > 4' };
  const policy = new Policy(texts);
  expect(policy.startText(at(texts, { keyboard: 1000 }), CHANGING, 0)).toBe('true && TARGET.JobPrio > 4');
  expect(policy.startText(at(texts, { keyboard: 1 }), CHANGING, 0)).toBe('false && TARGET.JobPrio > 4');
  const plain = new Policy({ ...POLICIES.always, START: 'TARGET.JobPrio>4' });
  expect(plain.startText(at(plain.texts, {}), CHANGING, 0)).toBe('TARGET.JobPrio>4');
});
