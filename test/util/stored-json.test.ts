import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { GryphusError } from '../../src/errors.ts';
import { isAttrTexts } from '../../src/job/attrs.ts';
import { checkStored, parseStored, storedOr } from '../../src/util/stored-json.ts';

const LINE = z.strictObject({ n: z.number() });
const place = { what: 'The journal /x/y', remedy: 'Delete it.' };

function refusal(read: () => unknown): GryphusError {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof GryphusError) return thrown;
  }
  throw new Error('It was not refused.');
}

describe('stored JSON', () => {
  it('is what the schema says', () => {
    expect(parseStored(LINE, '{"n":1}', place)).toEqual({ n: 1 });
    expect(checkStored(isAttrTexts, '{"A":"1","B":null}', place)).toEqual({ A: '1', B: null });
    expect(storedOr(LINE, '{"n":1}')).toEqual({ n: 1 });
  });

  it.each([
    ['{"n":', 'it is not JSON'],
    ['{"n":"1"}', 'n: '],
    ['{"n":1,"m":2}', 'Unrecognized key'],
  ])('%s is refused with its place, the fault and the remedy', (text, fault) => {
    const refused = refusal(() => parseStored(LINE, text, place));
    expect(refused.code).toBe('state-version');
    expect(refused.message).toContain('The journal /x/y is damaged');
    expect(refused.message).toContain(fault);
    expect(refused.suggestions).toEqual(['Delete it.']);
    expect(storedOr(LINE, text)).toBeUndefined();
  });

  it.each(['[]', '{"A":1}', 'null', '"A"'])('%s is no ad', (text) => {
    expect(refusal(() => checkStored(isAttrTexts, text, place)).message).toContain('The journal /x/y');
  });
});
