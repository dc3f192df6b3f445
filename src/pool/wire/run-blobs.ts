import type { Blob, SiteFile } from '../../site/contract.ts';
import type { RunSpec } from './wire.ts';

/** The blobs that a run needs at its worker. */
export function blobsOf(spec: RunSpec): Blob[] {
  const image = spec.container?.image;
  const files: (SiteFile | undefined)[] = [
    image?.kind === 'file' ? image.file : undefined,
    spec.executable,
    spec.stdin,
    ...spec.inputs.map((input) => (input.kind === 'file' ? input.file : undefined)),
  ];
  return files.flatMap((file) => (file?.kind === 'blob' ? [file.blob] : []));
}

const BY_SHA256 = new WeakMap<RunSpec, ReadonlyMap<string, Blob>>();

/** One of them, which may be of thousands, by its content. */
export function blobOf(spec: RunSpec, sha256: string): Blob | undefined {
  const known = BY_SHA256.get(spec) ?? new Map(blobsOf(spec).map((blob) => [blob.sha256, blob]));
  BY_SHA256.set(spec, known);
  return known.get(sha256);
}
