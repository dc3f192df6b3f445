import { describe, expect, it } from 'vitest';
import type { CredentialNews } from '../../src/credentials/watch/model.ts';
import { credentialNews, jobEnded, jobHeld, siteProblem } from '../../src/notify/messages.ts';

const job = (proc: number) => ({ cluster: 12, proc });
const news: CredentialNews = {
  key: 'jane 1795217644 3600',
  news: 'ending',
  name: 'jane',
  what: 'X.509 proxy',
  now: 1_795_214_044,
  end: 1_795_217_644,
  jobs: [job(0), job(1)],
  sites: ['alpha', 'beta'],
  type: ['gryphus cred renew jane'],
  holds: true,
};

describe('messages', () => {
  it('tells that a credential ends: when, for which jobs, and what to type', () => {
    const { subject, body, urgent } = credentialNews(news);
    expect(subject).toBe("[Gryphus] The X.509 proxy 'jane' ends in 1 h");
    expect(body).toBe(
      [
        "The X.509 proxy 'jane' ends in 1 h, at 2026-11-20 23:34 UTC.",
        '2 jobs need it. What has not started by then will be held, not lost.',
        '',
        'Jobs:  12.0 12.1',
        'Sites: alpha beta',
        '',
        'Type:',
        '    gryphus cred renew jane',
        '',
      ].join('\n'),
    );
    expect(urgent).toBe(true);
  });

  it.each(['ending', 'ended', 'broken', 'renewal-failing', 'fresh'] as const)('has its own words for %s', (kind) => {
    const { subject, body } = credentialNews({ ...news, news: kind, problem: 'The file is gone.' });
    expect(subject).toContain("'jane'");
    expect(body).toContain('The file is gone.');
    expect(body.includes('gryphus cred renew jane')).toBe(kind !== 'fresh');
  });

  it('does not speak of held jobs where none is held', () => {
    const { subject, body } = credentialNews({ ...news, news: 'ended', holds: false });
    expect(subject + body).not.toContain('held');
  });

  it('names twenty of many jobs', () => {
    const jobs = Array.from({ length: 25 }, (_, i) => job(i));
    expect(credentialNews({ ...news, jobs }).body).toContain('12.19 and 5 more\n');
  });

  it('tells how a job ended', () => {
    const ended = {
      id: job(3),
      attempt: 1,
      command: 'sim --n 3',
      site: 'alpha',
      how: { kind: 'signaled', signal: 9 },
      submittedAt: 0,
      startedAt: 60,
      endedAt: 60 + 93_600,
      cpuSeconds: 90_000,
    } as const;
    const { subject, body } = jobEnded(ended);
    expect(subject).toBe('[Gryphus] Job 12.3 was killed by signal 9');
    expect(body).toContain('Wall time: 1 d 2 h\nCPU time:  1 d 1 h\n');
    expect(jobEnded({ ...ended, attempt: 2 }).key).not.toBe(jobEnded(ended).key);
  });

  it('says why a job is held and how to continue it', () => {
    const held = { id: job(0), since: 0, command: 'a', code: 13, reason: 'no\nfile', suggestions: ['Make it.'] };
    expect(jobHeld(held).subject).toBe('[Gryphus] Job 12.0 is held: no file');
    expect(jobHeld(held).body).toContain(
      'Help:    Make it.\n\nType:\n    gryphus why 12.0\n    gryphus release 12.0\n',
    );
  });

  it('keeps subjects to one short line, whatever the words', () => {
    const problem = { site: 'a', since: 0, message: `${'x'.repeat(500)}\u001b[2J\r\n`, jobs: 1, suggestions: [] };
    const { subject, body } = siteProblem(problem);
    expect(subject.length).toBeLessThan(170);
    expect(subject + body).not.toMatch(/[\r\u001b]/);
    expect(body).toContain('1 job of yours waits for it');
  });
});
