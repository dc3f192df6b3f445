import type { AttrTexts } from '../job/attrs.ts';

/** HTCondor's attributes of a sandbox that went to the site (`In`) or came home (`Out`); Unix milliseconds. */
export function transferTimes(way: 'In' | 'Out', began: number, ended: number): AttrTexts {
  return {
    [`Transfer${way}Started`]: String(Math.floor(began / 1000)),
    [`Transfer${way}Finished`]: String(Math.floor(ended / 1000)),
  };
}
