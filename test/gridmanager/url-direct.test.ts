import { describe, expect, it } from 'vitest';
import { jobFiles } from '../../src/gridmanager/files.ts';
import type { UrlAccess } from '../../src/gridmanager/url-access.ts';
import { notPutThere } from '../../src/gridmanager/url-direct.ts';
import { UrlInputs } from '../../src/gridmanager/url-inputs.ts';
import { UrlOutputs } from '../../src/gridmanager/url-outputs.ts';
import { Attrs } from '../../src/job/attrs.ts';
import type { Site } from '../../src/site/contract.ts';

const KEY = 'a.1.0.1';
const access: UrlAccess = {
  fetchers: [],
  schemes: ['http'],
  hasLogin: () => false,
  optionsFor: async () => ({}),
};

describe('results that the site puts where URLs say', () => {
  it('are put once, though others of the job need another round', async () => {
    const asked: string[][] = [];
    const upload: NonNullable<Site['upload']> = async (_, files) => {
      asked.push(files.map(({ name }) => name));
      return files.map(({ name }) => name).filter((name) => name !== 'b' || asked.length > 1);
    };
    const outputs = new UrlOutputs(access, () => 0);
    const ctx = {
      record: { urls: 'direct' },
      site: { upload },
      urls: { access, inputs: new UrlInputs('/nowhere', access, () => 0), outputs },
    } as unknown as Parameters<typeof notPutThere>[0];
    const files = jobFiles(
      new Attrs({ Iwd: '"/tmp"', Cmd: '"/bin/true"', OutputDestination: '"http://h/d"', TransferOutput: '"a,b,c"' }),
      false,
    );
    expect(await notPutThere(ctx, KEY, files, ['a', 'b'])).toEqual(['b']);
    expect(await notPutThere(ctx, KEY, files, ['a', 'b'])).toEqual([]);
    expect(asked).toEqual([['a', 'b'], ['b']]);
    outputs.drop(KEY);
    expect(await notPutThere(ctx, KEY, files, ['a'])).toEqual([]);
    expect(asked).toHaveLength(3);
  });
});
