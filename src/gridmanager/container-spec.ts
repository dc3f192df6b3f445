import type { Attrs } from '../job/attrs.ts';
import { readBoolean, readString } from '../job/values.ts';
import type { ContainerSpec, InputFile, SiteFile } from '../site/contract.ts';

/** Whether the job runs in a container (HTCondor's container and docker universes). */
export function wantsContainer(ad: Attrs): boolean {
  return readBoolean(ad, 'WantContainer') === true || readBoolean(ad, 'WantDocker') === true;
}

/** The job's container, and its inputs without the image; `undefined` if it runs in no container. */
export function containerSpec(
  ad: Attrs,
  files: { readonly sandbox: boolean; readonly iwd: string; readonly executable: string },
  inputs: readonly InputFile[],
): { readonly container: ContainerSpec; readonly inputs: readonly InputFile[] } | undefined {
  if (!wantsContainer(ad)) return undefined;
  const docker = readBoolean(ad, 'WantDocker') === true;
  const { image, others } = imageOf(ad, inputs);
  const targetDir = readString(ad, 'ContainerTargetDir');
  const network = readString(ad, 'DockerNetworkType');
  const container = {
    image,
    docker,
    keepEntrypoint: docker && readBoolean(ad, 'DockerOverrideEntrypoint') !== true,
    ...(targetDir === undefined ? {} : { targetDir }),
    ...(network === undefined || network === '' ? {} : { network }),
    alwaysPull: readString(ad, 'DockerPullPolicy')?.toLowerCase() === 'always',
    binds: files.sandbox ? [] : [files.iwd, ...(isOfImage(ad) ? [] : [files.executable])],
  };
  return { container, inputs: others };
}

/** The program inside the image: its path there, a name on its PATH, or '' for the image's own entry point. */
export function programInImage(ad: Attrs): SiteFile | undefined {
  return wantsContainer(ad) && isOfImage(ad) ? { kind: 'there', path: readString(ad, 'Cmd') ?? '' } : undefined;
}

function isOfImage(ad: Attrs): boolean {
  return readBoolean(ad, 'TransferExecutable') === false;
}

function imageOf(
  ad: Attrs,
  inputs: readonly InputFile[],
): { readonly image: ContainerSpec['image']; readonly others: readonly InputFile[] } {
  const docker = readString(ad, 'DockerImage');
  if (docker !== undefined) {
    const name = docker.replace(/^docker:(\/\/)?/, '');
    return { image: { kind: 'registry', name: `docker://${name}` }, others: inputs };
  }
  const image = readString(ad, 'ContainerImage') ?? '';
  if (/^(docker|oras):/.test(image)) return { image: { kind: 'registry', name: image }, others: inputs };
  const carried = readString(ad, 'ContainerImageSource') === 'local' ? undefined : find(inputs, image);
  if (carried?.kind !== 'file') return { image: { kind: 'there', path: image }, others: inputs };
  const others = inputs.filter((input) => input !== carried);
  return { image: { kind: 'file', name: image, file: carried.file }, others };
}

function find(inputs: readonly InputFile[], name: string): InputFile | undefined {
  return inputs.find((input) => input.name === name);
}

/**
 * A job's transfer list. If its image is a directory, the trailing slash is removed, so that the directory is
 * transferred as a whole, under its name.
 */
export function withoutSlash(ad: Attrs, names: readonly string[]): readonly string[] {
  const image = readString(ad, 'ContainerImageFullPath');
  if (image === undefined || !image.endsWith('/') || !wantsContainer(ad)) return names;
  return names.map((name) => (name === image || name.endsWith(`/${image}`) ? name.replace(/\/+$/, '') : name));
}
