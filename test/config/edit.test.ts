import { describe, expect, it } from 'vitest';
import { withSetting } from '../../src/config/edit.ts';

const FILE = `# mine
[pool]
cpus = 2 # of "four" # cores
start = 'Owner != "a#b"'	# not a

[daemons]
environment = [ # many
  "A[", # ]
  "B",
]

[notify]
email = "a#b@example.org"
`;

describe('a setting in a file', () => {
  it.each([
    ['pool.cpus', '3', 'cpus = 2 #', 'cpus = 3 #'],
    ['pool.start', '"true"', `start = 'Owner != "a#b"'`, 'start = "true"'],
    ['notify.email', '"x"', '"a#b@example.org"', '"x"'],
    ['daemons.environment', '["C"]', FILE.slice(FILE.indexOf('[ # many'), FILE.indexOf('\n\n[notify]')), '["C"]'],
    ['pool.memory', '"1G"', '[pool]\n', '[pool]\nmemory = "1G"\n'],
  ])('%s is replaced, and nothing else', (key, value, before, after) => {
    expect(withSetting(FILE, key, value)).toBe(FILE.replace(before, after));
  });

  it('is removed with all its lines', () => {
    expect(withSetting(FILE, 'daemons.environment', undefined)).toBe(FILE.replace(/environment[^]*\n\]\n/, ''));
  });
});
