import { expect, it } from 'vitest';
import { slurmTime } from '../../src/batch-script/slurm-times.ts';

const NOW = Math.floor(new Date(2026, 10, 29, 15, 30, 20).getTime() / 1000);
const at = (...parts: [number, number, number, number?, number?, number?]) =>
  Math.floor(new Date(...parts).getTime() / 1000);

it.each([
  ['now', NOW],
  ['now+90', NOW + 90],
  ['now+1hour', NOW + 3600],
  ['now + 2 weeks', NOW + 14 * 86_400],
  ['now+60minutes', NOW + 3600],
  ['today', NOW],
  ['tomorrow', NOW + 86_400],
  ['16:00', at(2026, 10, 29, 16)],
  ['4:00pm', at(2026, 10, 29, 16)],
  ['15:30:19', at(2026, 10, 30, 15, 30, 19)],
  ['noon', at(2026, 10, 30, 12)],
  ['midnight', at(2026, 10, 30)],
  ['teatime', at(2026, 10, 29, 16)],
  ['2030-01-20', at(2030, 0, 20)],
  ['2030-01-20T12:34', at(2030, 0, 20, 12, 34)],
  ['2030-01-20T12:34:56', at(2030, 0, 20, 12, 34, 56)],
  ['2010-01-20', at(2010, 0, 20)],
  ['0120', at(2027, 0, 20)],
  ['1231', at(2026, 11, 31)],
  ['013030', at(2030, 0, 30)],
  ['12/24', at(2026, 11, 24)],
  ['24.12.27', at(2027, 11, 24)],
  ['16:00 12/24/28', at(2028, 11, 24, 16)],
  ['12/24/28 4pm', at(2028, 11, 24, 16)],
])('a time of --begin and --deadline: %s', (text, seconds) => expect(slurmTime(text, NOW)).toBe(seconds));

it.each(['nonsense', '25:00', '13:00pm', '1332', '2030-13-01', 'now+3parsecs', '', '12:60'])(
  'what is none is refused: %j',
  (text) => expect(() => slurmTime(text, NOW)).toThrow('is not a time'),
);
