import * as z from 'zod';
import { type AttrTexts, isAttrTexts } from './attrs.ts';
import { type AttemptKey, isAttemptKey } from './ids.ts';

export const attemptKey = z.custom<AttemptKey>(
  (value) => typeof value === 'string' && isAttemptKey(value),
  'not an attempt key',
);
export const attemptKeys = z.array(attemptKey);

export const attrTexts = z.custom<AttrTexts>(isAttrTexts, 'not an ad');
