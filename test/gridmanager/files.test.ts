import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containerSpec, withoutSlash } from '../../src/gridmanager/container-spec.ts';
import { destination, jobFiles } from '../../src/gridmanager/files.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { quoted } from '../../src/job/values.ts';
import { parseRemaps } from '../../src/job/transfer-lists.ts';

const ad = (attrs: Record<string, string>) => new Attrs({ Iwd: '"/home/j"', Cmd: '"/bin/prog"', ...attrs });

describe('where a job runs', () => {
  it.each([
    ['a plain vanilla job on this machine', {}, true, false],
    ['the same at another site', {}, false, true],
    ['one that names inputs', { TransferInput: '"a,b"' }, true, true],
    ['should_transfer_files = YES', { ShouldTransferFiles: '"YES"' }, true, true],
    ['should_transfer_files = NO', { ShouldTransferFiles: '"NO"' }, false, false],
    ['a grid job on this machine', { JobUniverse: '9' }, true, true],
    ['a job in a container on this machine', { WantContainer: 'true' }, true, true],
    ['the same with should_transfer_files = NO', { WantDocker: 'true', ShouldTransferFiles: '"NO"' }, true, false],
    ['the local universe', { JobUniverse: '12', TransferInput: '"a"' }, true, false],
    ['the scheduler universe', { JobUniverse: '7' }, true, false],
  ])('%s', (_, attrs, here, sandbox) => {
    expect(jobFiles(ad(attrs), here).sandbox).toBe(sandbox);
  });

  it('names its files absolutely, and keeps the slash that means the contents', () => {
    const files = jobFiles(
      ad({ TransferInput: '" a b ,,sub/ , /abs"', Out: '"o.txt"', In: '"/dev/null"', Err: '""' }),
      false,
    );
    expect(files.inputs).toEqual(['/home/j/a b', '/home/j/sub/', '/abs']);
    expect(files.stdout).toBe('/home/j/o.txt');
    expect(files.stdin).toBeUndefined();
    expect(files.stderr).toBeUndefined();
  });
});

describe('a container', () => {
  const made = (attrs: Record<string, string>, inputs: readonly string[] = []) => {
    const all = ad({ JobUniverse: '5', ...attrs });
    const brought = inputs.map(
      (name) => ({ kind: 'file', name, file: { kind: 'there', path: `/x/${name}` } }) as const,
    );
    return containerSpec(
      all,
      jobFiles(all, true),
      brought.map((input) => ({ ...input, executable: false })),
    );
  };

  it.each([
    [
      'docker_image',
      { WantDocker: 'true', DockerImage: '"debian:12"' },
      { kind: 'registry', name: 'docker://debian:12' },
    ],
    ['its URL', { WantContainer: 'true', DockerImage: '"docker://a/b"' }, { kind: 'registry', name: 'docker://a/b' }],
    [
      'container_image',
      { WantContainer: 'true', ContainerImage: '"docker://a"' },
      { kind: 'registry', name: 'docker://a' },
    ],
    [
      'an image at the node',
      { WantContainer: 'true', ContainerImage: '"/cvmfs/y.sif"', ContainerImageSource: '"local"' },
      { kind: 'there', path: '/cvmfs/y.sif' },
    ],
    [
      'an image that is carried',
      { WantContainer: 'true', ContainerImage: '"b.sif"', ContainerImageSource: '"cedar"' },
      { kind: 'file', name: 'b.sif', file: { kind: 'there', path: '/x/b.sif' } },
    ],
  ])('of %s', (_, attrs, image) => {
    const { container, inputs } = made(attrs, ['b.sif', 'data']) ?? {};
    expect(container?.image).toEqual(image);
    expect(inputs?.map(({ name }) => name)).toEqual(image.kind === 'file' ? ['data'] : ['b.sif', 'data']);
  });

  it('is what the job says, and no more', () => {
    expect(made({ DockerImage: '"debian"' })).toBeUndefined();
    const docker = { WantDocker: 'true', DockerImage: '"x"' };
    expect(made(docker)?.container).toMatchObject({ docker: true, keepEntrypoint: true, alwaysPull: false, binds: [] });
    const more = { DockerOverrideEntrypoint: 'true', DockerPullPolicy: '"always"', DockerNetworkType: '"none"' };
    expect(made({ ...docker, ...more, ContainerTargetDir: '"/srv"' })?.container).toMatchObject({
      keepEntrypoint: false,
      alwaysPull: true,
      network: 'none',
      targetDir: '/srv',
    });
    const here = { ...docker, ShouldTransferFiles: '"NO"' };
    expect(made(here)?.container.binds).toEqual(['/home/j', '/bin/prog']);
    expect(made({ ...here, TransferExecutable: 'false' })?.container.binds).toEqual(['/home/j']);
  });

  it('of a directory has all of it under its name', () => {
    const attrs = ad({ WantContainer: 'true', ContainerImageFullPath: '"root/"', TransferInput: '"root/,other/"' });
    expect(withoutSlash(attrs, jobFiles(attrs, true).inputs)).toEqual(['/home/j/root', '/home/j/other/']);
  });
});

describe('transfer_output_remaps', () => {
  it('reads pairs, escapes and blanks', () => {
    expect([...parseRemaps(' a = b ; c\\;d=e\\=f;;x = /abs/y')]).toEqual([
      ['a', 'b'],
      ['c;d', 'e=f'],
      ['x', '/abs/y'],
    ]);
  });

  it('reads back every name that is written with escapes', () => {
    const name = fc.string({ minLength: 1 }).filter((s) => s.trim() === s);
    const escape = (s: string) => s.replaceAll(/[\\;=]/g, '\\$&');
    fc.assert(
      fc.property(name, name, (from, to) => {
        expect([...parseRemaps(`${escape(from)}=${escape(to)}`)]).toEqual([[from, to]]);
      }),
    );
  });

  it('moves files and whole directories', () => {
    const files = jobFiles(ad({ TransferOutputRemaps: quoted('out=/data/o; d=other') }), false);
    expect(destination(files, 'out')).toBe('/data/o');
    expect(destination(files, 'd/x/y')).toBe('/home/j/other/x/y');
    expect(destination(files, 'plain')).toBe('/home/j/plain');
  });
});
