import type { AttrTexts } from '../job/attrs.ts';

/**
 * HTCondor's attributes for the transfer of a sandbox to the site (`In`) or back (`Out`). Arguments in Unix
 * milliseconds.
 */
export function transferTimes(way: 'In' | 'Out', began: number, ended: number): AttrTexts {
  return {
    [`Transfer${way}Started`]: String(Math.floor(began / 1000)),
    [`Transfer${way}Finished`]: String(Math.floor(ended / 1000)),
  };
}
